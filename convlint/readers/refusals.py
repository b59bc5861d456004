"""The reader of formats that are refused: why each is not read, and what to save instead."""

from __future__ import annotations

from collections.abc import Mapping

from convlint.model.report import InputError
from convlint.readers import Outcome, Reader, ReadOptions

_PICKLE = (
    "a pickled checkpoint is not read, because unpickling runs the code inside it; "
    "use safetensors, ONNX or a torch.export program (.pt2), or check the module itself as package.module:name"
)
_HDF5 = (
    "Keras's HDF5 files are not read; save the model as .keras: "
    "keras.models.load_model(old).save('net.keras'), of weights alone after load_weights"
)
# Keras 3 itself loads no SavedModel; both forms are documented by tf2onnx
SAVED_MODEL = (
    "a TensorFlow SavedModel is not read; make it ONNX (python -m tf2onnx.convert --saved-model FOLDER --output "
    "net.onnx), or save the Keras model that it came from as .keras"
)
_TFLITE = "TensorFlow Lite files are not read; make it ONNX: python -m tf2onnx.convert --tflite FILE --output net.onnx"
_ENGINE = "a TensorRT engine is built for one GPU; check the ONNX file that it was built from"
_REASONS: Mapping[str, str] = {
    ".h5": _HDF5, ".hdf5": _HDF5, ".pb": SAVED_MODEL, ".tflite": _TFLITE, ".engine": _ENGINE, ".plan": _ENGINE,
}  # fmt: skip


def read(path: str, options: ReadOptions) -> Outcome:  # noqa: ARG001
    """An error that says what to use instead; the file is not opened."""
    name = path.lower()
    message = next((reason for suffix, reason in _REASONS.items() if name.endswith(suffix)), _PICKLE)
    return None, (InputError(path=path, message=message),)


READER = Reader(read=read)
