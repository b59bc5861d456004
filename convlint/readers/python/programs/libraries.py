"""Libraries that programs import: those that set cudnn's flags for them, and those that are known to set none."""

from __future__ import annotations

import sys
from collections.abc import Iterable

# Libraries with a loop of their own that own the settings, as they are named to people.
TRAINERS = {
    "pytorch_lightning": "Lightning",
    "lightning": "Lightning",
    "lightning_fabric": "Lightning",
    "composer": "Composer",
    "mmengine": "MMEngine",
    "mmcv": "MMCV",
    "mmdet": "MMDetection",
    "mmcls": "MMClassification",
    "mmpretrain": "MMPretrain",
    "mmseg": "MMSegmentation",
    "detectron2": "Detectron2",
    "fastai": "fastai",
    "ignite": "Ignite",
    "catalyst": "Catalyst",
    "ultralytics": "Ultralytics",
    "super_gradients": "SuperGradients",
    "skorch": "skorch",
    "torchbearer": "torchbearer",
    "poutyne": "Poutyne",
    "classy_vision": "ClassyVision",
    "vissl": "VISSL",
    "deepspeed": "DeepSpeed",
    "basicsr": "BasicSR",
    "torchreid": "torchreid",
    "avalanche": "Avalanche",
    "anomalib": "Anomalib",
    "nnunetv2": "nnU-Net",
    "flash": "Flash",
    "pl_bolts": "Lightning Bolts",
}
_OF_TRANSFORMERS = ("Trainer", "Seq2SeqTrainer", "TrainingArguments")
FRAMEWORKS = {
    "torch": "pytorch",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "tf_keras": "keras",
    "mxnet": "mxnet",
    "jax": "jax",
    "paddle": "paddle",
}
# These set nothing of cudnn's by being imported, nor by what training scripts call of them.
_HARMLESS = frozenset(
    """
    torch torchvision torchaudio torchtext torchdata timm numpy scipy pandas PIL cv2 skimage sklearn matplotlib seaborn
    tqdm yaml ruamel tensorboard tensorboardX tensorboard_logger visdom wandb mlflow comet_ml neptune aim swanlab
    albumentations imgaug einops h5py lmdb msgpack pyarrow json5 ujson orjson simplejson toml tomli omegaconf hydra
    fire click absl typer tyro configargparse jsonargparse docopt termcolor colorama rich loguru progress progressbar
    tabulate prettytable texttable natsort easydict addict munch attr attrs dotenv requests boto3 gdown huggingface_hub
    transformers tokenizers datasets safetensors accelerate apex torchsummary torchinfo thop ptflops torchmetrics lpips
    pytorch_msssim piq piqa kornia segmentation_models_pytorch efficientnet_pytorch pretrainedmodels pytorchcv
    pycocotools nltk sentencepiece networkx psutil GPUtil pynvml cupy numba imageio tifffile nibabel SimpleITK pydicom
    rasterio medpy moviepy av decord tables openpyxl xlrd dill cloudpickle joblib packaging setuptools pkg_resources
    six future builtins typing_extensions IPython ipdb graphviz torchviz onnx onnxruntime tensorflow warmup_scheduler
    torch_optimizer ranger adabelief_pytorch lion_pytorch ema_pytorch torch_ema randaugment autoaugment mpi4py horovod
    torchsample resnet_pytorch facenet_pytorch pytorch_warmup tensorwatch plotly bokeh shapely trimesh open3d
    sacred ray optuna hyperopt nni pyvips jpeg4py turbojpeg kaggle mnist medmnist cleanfid pytorch_fid torch_fidelity
    fvcore iopath yacs xformers bitsandbytes vit_pytorch timm_vis geffnet ffcv webdataset streaming
    """.split()  # noqa: SIM905 - a table of hundred names reads better so
)


def trainer_of(foreign: Iterable[str]) -> str:
    """The library that owns a program's settings, by the modules that it imports; '' for none."""
    for name in sorted(foreign):
        first, *rest = name.split(".")
        if first in TRAINERS:
            return TRAINERS[first]
        if first == "transformers" and rest and rest[-1] in _OF_TRANSFORMERS:
            return "Transformers' Trainer"
    return ""


def unknown(foreign: Iterable[str]) -> str:
    """A library that may set anything, as nobody knows it; '' for none."""
    known = _HARMLESS | sys.stdlib_module_names
    return next((name for name in sorted(foreign) if name and name.split(".")[0] not in known), "")


def framework_of(foreign: Iterable[str]) -> str:
    """The framework that a program trains with; '' for none."""
    first = {name.split(".")[0] for name in foreign}
    return next((framework for name, framework in FRAMEWORKS.items() if name in first), "")
