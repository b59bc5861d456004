"""The reader of specs: the top level of the document, its runtime block, and the errors of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convlint.files.located_yaml import LINE_BREAK, Value, fault, parse, read_text
from convlint.model.errors import InputFault, shown, suggestion
from convlint.model.layer import Mode
from convlint.model.location import Span
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import VERSIONS, Runtime, Version
from convlint.readers import Outcome, Reader, ReadOptions
from convlint.readers.spec.fields import TRUTHS, boolean, choice, integer, text_in, word
from convlint.readers.spec.graph import Defaults, SpecErrors, SpecGraph, TooManyErrors

FRAMEWORKS: Mapping[str, str] = {
    "pytorch": "pytorch", "torch": "pytorch",
    "tensorflow": "tensorflow", "tf": "tensorflow",
    "jax": "jax", "xla": "jax", "flax": "jax",
    "tensorrt": "tensorrt", "trt": "tensorrt",
    "onnxruntime": "onnxruntime", "onnx runtime": "onnxruntime", "ort": "onnxruntime",
    "mxnet": "mxnet", "paddle": "paddle", "keras": "keras", "caffe": "caffe", "cudnn": "cudnn", "other": "other",
}  # fmt: skip
BOOLEANS = (
    "compile", "cudnn_benchmark", "cudnn_enabled", "fixed_input_size", "deterministic", "tf32", "prefer_nhwc",
    "tf_cudnn_use_autotune", "pinned_memory", "mixed_precision", "cuda_graphs", "cudnn_conv_use_max_workspace",
)  # fmt: skip
WORDS = ("optimizer",)
NUMBERS = ("mxnet_cudnn_autotune_default", "xla_gpu_autotune_level")
CHOICES: Mapping[str, Mapping[str, str]] = {
    "framework": FRAMEWORKS,
    "cudnn_conv_algo_search": {"exhaustive": "EXHAUSTIVE", "heuristic": "HEURISTIC", "default": "DEFAULT"},
    "gpu_clock": {"base": "base", "boost": "boost", "default": "base", "max": "boost"},
}
ALIASES = {
    "allow_tf32": "tf32", "use_tf32": "tf32", "benchmark": "cudnn_benchmark", "torch_compile": "compile",
    "amp": "mixed_precision", "cuda_graph": "cuda_graphs",
    "cuda_version": "cuda", "cudnn_version": "cudnn", "tensorrt_version": "tensorrt", "trt": "tensorrt",
}  # fmt: skip
OPTIMIZERS = dict.fromkeys(("sgd_momentum", "momentum_sgd", "sgd_with_momentum", "nesterov"), "momentum")
_MAX_SETTINGS = 200  # there are some twenty; each unknown one costs a search for a similar name
SETTINGS = (*CHOICES, *VERSIONS, *BOOLEANS, *NUMBERS, *WORDS)


def runtime_of(value: Value | None) -> tuple[Runtime, list[InputFault]]:
    """The runtime, and every error in its block; settings that are not given are unknown."""
    if value is None or value.is_null:
        return Runtime(), []
    if not isinstance(value.data, dict):
        return Runtime(), [fault(f"runtime must be a mapping, not {value.kind}", value.span)]
    if len(value.data) > _MAX_SETTINGS:
        return Runtime(), [fault(f"runtime: more than {_MAX_SETTINGS} settings", value.span)]
    settings: dict[str, Any] = {}
    spans: dict[str, Span] = {}
    errors: list[InputFault] = []
    for key, item in value.data.items():
        name = ALIASES.get(key.lower(), key.lower())
        try:
            if name not in SETTINGS:
                hint = suggestion(key, SETTINGS)
                raise fault(f"unknown runtime setting {shown(key)!r}{hint}", item.key_span or item.span)
            if name in settings:
                raise fault(f"{key} says again what line {spans[name][0]} says", item.key_span or item.span)
            settings[name] = _setting(name, item)
            spans[name] = item.span
        except InputFault as error:
            errors.append(error)
    return Runtime(**settings, spans=spans), errors


def _setting(name: str, item: Value) -> Any:
    if name in CHOICES:
        return choice(name, item, CHOICES[name])
    if name in VERSIONS:
        return _version(name, item)
    if name in WORDS:
        return _optimizer(text_in(name, item), item)
    if name in NUMBERS:
        return integer(name, item, minimum=0)
    if item.data in ("0", "1"):  # as environment variables and options of ONNX Runtime spell a boolean
        return item.data == "1"
    return boolean(name, item)


def _optimizer(text: str, item: Value) -> str:
    """The name of an optimizer, `adamw` for `torch.optim.AdamW`; SGD with momentum has several names."""
    name = text.rpartition(".")[2].strip().lower().replace("-", "_")
    if not name.replace("_", "").isalnum() or name.isdigit() or name in TRUTHS:
        raise fault(f"optimizer: {shown(text)!r} is no optimizer's name such as adamw", item.span)
    return OPTIMIZERS.get(name, name)


def _version(name: str, item: Value) -> Version:
    text = word(name, item)
    if name == "cudnn" and text.isdigit() and len(text) in (4, 5):  # 8902 or 90100, as cudnnGetVersion() returns it
        number = int(text)
        major, rest = divmod(number, 1000) if len(text) == 4 else divmod(number, 10000)
        text = f"{major}.{rest // 100}.{rest % 100}"
    try:
        if text.endswith((".x", ".X", ".*")):  # a range, of which the oldest would be refused what the newest runs
            raise ValueError(text)
        return Version(text)
    except ValueError:
        raise fault(f"{name}: {shown(text)!r} is not a version such as 8.9.2", item.span) from None


TOP_KEYS = ("version", "target", "mode", "runtime", "whole_step", "defaults", "layers", "name", "description")
TOP_ALIASES: Mapping[str, str] = {"targets": "target", "gpu": "target"}
MOST_TARGETS = 100  # there are some sixty GPUs
MODES: Mapping[str, str] = {
    "training": "training", "train": "training",
    "inference": "inference", "infer": "inference", "eval": "inference",
}  # fmt: skip


def read(path: str, options: ReadOptions) -> Outcome:
    """The network that the spec at `path` ("-": standard input) describes, and everything wrong with it."""
    shown_path = "<stdin>" if path == "-" else path
    try:
        return read_known(read_text(path), shown_path, options)
    except InputFault as error:
        return None, (_error(shown_path, error),)


def read_known(text: str, path: str, options: ReadOptions) -> Outcome:
    """`read` for the text of a file that has been opened already."""
    try:
        return read_spec(text, path, options)
    except InputFault as error:
        return None, (_error(path, error),)


def _error(path: str, fault: InputFault) -> InputError:
    return InputError(path=path, message=fault.message, line=fault.line, column=fault.column)


def read_spec(text: str, path: str, options: ReadOptions | None = None) -> Outcome:
    """The network in the text of a spec, and its errors. Raises InputFault only where the text is not YAML."""
    document = parse(text)
    if document is None:
        raise InputFault("is empty: a spec needs version: 1 and layers:", line=1, column=1)
    return _Spec(path, options or ReadOptions()).read(document, text)


def read_fragment(document: Value, path: str) -> Outcome:
    """The network of a rule's example: a spec whose layers may leave out K, the filter and any size."""
    return _Spec(path, ReadOptions(), complete=False).read(document, "")


class _Spec:
    """One pass over a spec, which collects `errors`."""

    def __init__(self, path: str, options: ReadOptions, *, complete: bool = True) -> None:
        self.path, self.options, self.complete = path, options, complete
        self.errors = SpecErrors(path)

    def read(self, document: Value, text: str) -> Outcome:
        if not isinstance(document.data, dict):
            raise fault(f"a spec is a mapping with version: and layers:, not {document.kind}", document.span)
        try:
            network = self._network(document, text)
        except TooManyErrors:
            network = None
        return network, tuple(self.errors.noted)

    def _network(self, document: Value, text: str) -> Network:
        top = self._top(document.data)
        runtime, runtime_errors = runtime_of(top.get("runtime"))
        for error in runtime_errors:
            self.errors.fail(error)
        self.errors.attempt(lambda: self._version(top.get("version"), document), None)
        mode = self.errors.attempt(lambda: _mode(top.get("mode")), None)
        targets = self.errors.attempt(lambda: _targets(top.get("target")), None) or ()
        whole = top.get("whole_step")
        all_stated = self.errors.attempt(lambda: None if whole is None else boolean("whole_step", whole), None)
        defaults = Defaults.read(top.get("defaults"), self.errors.fail)
        graph = SpecGraph(self.errors, defaults, batch=self.options.batch, complete=self.complete)
        graph.wiring.whole = all_stated or None
        graph.read(top.get("layers"), document)
        defaults.check()
        layers = graph.finished()
        return Network(
            path=self.path,
            layers=layers,
            whole=all_stated is not False and bool(graph.wiring.whole) and bool(layers) and not self.errors.noted,
            edges=tuple(graph.edges),
            operations=graph.wiring.finished(graph.readers),
            runtime=runtime,
            mode=mode,
            targets=targets,
            spans={key: value.span for key, value in top.items() if key in ("target", "mode", "runtime")},
            source_lines=tuple(LINE_BREAK.split(text)),
        ).with_frozen_layers()

    def _top(self, mapping: Mapping[str, Value]) -> dict[str, Value]:
        top: dict[str, Value] = {}
        for key, value in mapping.items():
            name = TOP_ALIASES.get(key, key)
            at = value.key_span or value.span
            if name in top:
                self.errors.fail(fault(f"{key} says again what line {top[name].span[0]} says", at))
            elif name in TOP_KEYS:
                top[name] = value
            elif not key.startswith("x-"):  # a place for anchors, as in Docker Compose
                self.errors.fail(fault(f"unknown key {shown(key)!r}{suggestion(key, TOP_KEYS)}", at))
        return top

    @staticmethod
    def _version(value: Value | None, document: Value) -> None:
        if value is None:
            raise fault("version is missing; write version: 1", document.span)
        if value.data != "1":
            text = shown(value.data) if isinstance(value.data, str) and not value.is_null else value.kind
            raise fault(f"version must be 1, not {text}", value.span)


def _mode(value: Value | None) -> Mode | None:
    if value is None:
        return None
    return "training" if choice("mode", value, MODES) == "training" else "inference"


def _targets(value: Value | None) -> tuple[str, ...]:
    if value is None:
        return ()
    items = value.data if isinstance(value.data, list) else [value]
    if len(items) > MOST_TARGETS:
        raise fault(f"target: more than {MOST_TARGETS} GPUs", value.span)
    return tuple(dict.fromkeys(word("target", item) for item in items))


READER = Reader(read=read, read_text=read_known)
