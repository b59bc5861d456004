"""Find the files that are training programs, what they import and run on, and where a setting can be inserted."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from convlint.files.repository import is_quiet
from convlint.model.location import Location
from convlint.readers.python.evaluator import names_of
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.programs.segments import Segment
from convlint.readers.python.programs.settings import may_set
from convlint.readers.python.programs.unit import Definition, SourceUnit, statements
from convlint.readers.python.source_file import dotted, is_guard, last_name
from convlint.readers.python.walking import every

_BACKWARD = re.compile(rb"\.(?:backward|manual_backward|scaled_backward)\s*\(|(?<!def )\bbackward\s*\(")
_STEP = re.compile(rb"\.step\s*\(|\bscaler\s*\(")
_FIT = re.compile(rb"\.(?:fit|fit_generator|fit_one_cycle|fine_tune|train_on_batch)\s*\(")
# An optimizer that takes the loss or gradients, and a scaler that takes both, as of timm
_TAPE = re.compile(rb"\.(?:apply_gradients|minimize)\s*\(|\bminimize\s*\(|scaler\s*\(\s*(?=\w*loss)\w+\s*,\s*\w*optim")
_TRAINER = re.compile(rb"(?:Trainer|Runner|Engine|\bbuild_runner)\b")
_HANDS_OVER = re.compile(rb"\btrain_(?:model|detector|segmentor)\s*\(")  # functions of OpenMMLab
_RUN = re.compile(rb"\.(?:fit|train|run)\s*\(")
# A call at the top level by whose name a function trains, which another file may define
_TRAINING = re.compile(rb"^[ \t]*(?:\w[\w, ]*=[ \t]*)?(?:\w+\.)*(?:run_|do_)?(?:fit|train)\w*\(", re.MULTILINE)
_LOOP = re.compile(rb"^(?:if\b.*\n(?:[ \t].*\n|\n)*?[ \t]+)?(?:for|while)\b", re.MULTILINE)  # at the top level
_UPDATES = re.compile(_BACKWARD.pattern + rb"|\boptim\w*\.step\s*\(")
_NAME = re.compile(r"\w+")
_TRAINS = {"backward", "fit", "fit_generator", "train_on_batch", "apply_gradients", "minimize"}


def may_be_entry(content: bytes) -> bool:
    """Whether a file can be a training program, by its text."""
    if b"__main__" in content or b".backward(" in content or b".fit(" in content:
        return True
    return (b"fit" in content or b"train" in content) and bool(_TRAINING.search(content) or _LOOP.search(content))


def beginning(unit: SourceUnit, segments: Callable[[], Iterable[Segment]]) -> ast.stmt | None:
    """Return the statement where a program begins: its guard, or the first statement of the module that trains.

    `segments` gives those of all files that it imports.

    A bare backward pass, as of a toy that explains gradients, is the beginning only where nothing else trains. A loop
    may call a method of another file that is `updating` weights, as `trainer.run_one_step(images)`.
    """
    body = unit.file.tree.body
    for node in filter(is_guard, body):
        return node
    # A notebook or script without a guard calls its training function, or another file's, at the top level.
    loops = _loops(unit)
    calls = (node for node in statements(body) if isinstance(node, ast.Expr | ast.Assign))
    training = [
        node
        for node in calls
        if _trains(node.value, loops)
        or _trains_elsewhere(node.value, unit)
        or _trains_by_object(node.value, unit, segments())
    ]
    if training:
        return next((node for node in training if not _is_bare(node, body)), training[0])
    outer = [node for node in statements(body) if isinstance(node, ast.For | ast.While)]
    methods = _updating(segments()) if outer else ()
    return next((node for node in outer if any(_calls_method(inner, methods) for inner in every(node))), None)


def installed(unit: SourceUnit, names: Collection[str]) -> ast.stmt | None:
    """Return the first statement that binds one of the names, which a package installs as commands."""
    for node in unit.file.tree.body:
        bound = {target.id for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)}
        if not bound.union([getattr(node, "name", "")]).isdisjoint(names):
            return node
    return None


def _calls_method(node: ast.AST, names: Collection[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def _updating(segments: Iterable[Segment]) -> set[str]:
    """Return the names of methods that go backward, or update weights."""
    return {segment.name for segment in segments if segment.is_method and segment.has(_UPDATES)}


def _loops(unit: SourceUnit) -> set[str]:
    """The functions of a file that go backward, or call one that does."""
    loops = {
        name
        for name, function in unit.functions.items()
        if any(isinstance(node, ast.Attribute) and node.attr == "backward" for node in every(function))
    }
    others = {name: function for name, function in unit.functions.items() if name not in loops}
    while leading := {name for name, function in others.items() if _calls_any(function, loops)}:
        loops |= leading
        others = {name: function for name, function in others.items() if name not in leading}
    return loops


def _trains_elsewhere(node: ast.expr, unit: SourceUnit) -> bool:
    """Whether it calls a function of another file that says by its name that it trains, and does."""
    if not isinstance(node, ast.Call) or not _TRAINING.match(f"{dotted(node.func)}(".encode()):
        return False
    first = dotted(node.func).partition(".")[0]
    if first in unit.assigned or not any(binding.name == first for binding in unit.imports):
        return False
    called = unit.resolve(node.func)
    return (
        called.unit is not None
        and called.unit.path != unit.path
        and isinstance(called.node, Definition)
        and called.node.name in _loops(called.unit)
    )


def _trains_by_object(node: ast.expr, unit: SourceUnit, segments: Iterable[Segment]) -> bool:
    """Whether it is `trainer.train()` of an object whose class, by its name, has that method in the repository."""
    match node:
        case ast.Call(func=ast.Attribute(ast.Name(name), method)) if _TRAINING.match(f"{method}(".encode()):
            made = {last_name(value.func) for value in unit.assigned.get(name, []) if isinstance(value, ast.Call)}
            return bool(made) and not made.isdisjoint(_classes_with(method, list(segments)))
    return False


def _classes_with(method: str, segments: Sequence[Segment]) -> set[str]:
    """Return the classes that have a method of that name, themselves or by a base; not one that takes a mode."""
    found = {
        segment.cls
        for segment in segments
        if segment.is_method and segment.name == method and b"mode" not in segment.lines[0]
    }
    heads = {segment.name: segment.lines[0].decode(errors="replace") for segment in segments if segment.kind == "class"}
    while more := {
        name for name, head in heads.items() if name not in found and not found.isdisjoint(_NAME.findall(head))
    }:
        found |= more
    return found


def _is_bare(node: ast.Expr | ast.Assign, body: list[ast.stmt]) -> bool:
    """Whether it is a backward pass in no loop that has an optimizer's step."""
    if not (isinstance(node.value, ast.Call) and last_name(node.value.func) == "backward"):
        return False
    around = (loop for loop in statements(body) if isinstance(loop, ast.For | ast.While)
              and loop.lineno <= node.lineno <= (loop.end_lineno or loop.lineno))  # fmt: skip
    return not any(
        isinstance(inner, ast.Attribute) and inner.attr == "step" for loop in around for inner in every(loop)
    )


def _calls_any(function: ast.AST, names: set[str]) -> bool:
    calls = (node.func for node in every(function) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Name) and called.id in names for called in calls)


def has_loop(reached: Iterable[Segment], trainer: bool) -> bool:
    """Whether code that a program reaches trains; with a `trainer`, a library has the training loop."""
    backward = step = False
    for segment in reached:
        backward = backward or segment.has(_BACKWARD)
        step = step or segment.has(_STEP)
        # A backward pass alone may be a saliency map, a step alone a scheduler of anything.
        if (backward and step) or segment.has(_TAPE):
            return True
        if trainer and any(map(segment.has, (_FIT, _HANDS_OVER))):
            return True
        if trainer and segment.has(_TRAINER) and segment.has(_RUN):
            return True
    return False


def _trains(node: ast.expr, loops: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in loops
    return isinstance(node.func, ast.Attribute) and node.func.attr in _TRAINS


MOST_OTHERS = 20  # programs outside the checked files that are read for a setting which they import


def candidates(imports: ProjectImports, wanted: Collection[str], entries: Sequence[str]) -> list[str]:
    """Return the programs among the `wanted` files, or that import a setting from one; with `entries`, those only."""
    project = imports.project
    if entries:
        # Entries of a configuration may be relative to the repository as well as to the current folder.
        real = {os.path.abspath(path) for entry in entries for path in (entry, os.path.join(project.root, entry))}
        return [path for path in project.paths if os.path.abspath(path) in real]
    setting = {path for path in wanted if not is_quiet(path) and may_set(project.content(path) or b"")}
    paths = []
    for path in project.paths:
        if is_quiet(path) or not (path in wanted or setting):
            continue
        if path not in project.commands and not may_be_entry(project.content(path) or b""):
            continue
        if path in wanted or not setting.isdisjoint(imports.closure(path).files):
            paths.append(path)
    others = [path for path in paths if path not in wanted]
    return [path for path in paths if path in wanted or path in others[:MOST_OTHERS]]


_MENTIONS = re.compile(rb"cuda|cudnn|gpu|accelerator|fabric", re.IGNORECASE)
_DEVICE = re.compile(r"(?:cuda|gpu)(?::.*)?", re.IGNORECASE)
_LIBRARIES = {"Accelerator", "Fabric"}
# Names of torch.cuda that scripts on the CPU use too: they ask for a GPU, or seed one in case it exists
_IDLE = re.compile(r"torch\.cuda(?:\.(?:is_available|device_count|get_device_name|manual_seed\w*|empty_cache))?")


def has_gpu(content: bytes, unit: Callable[[], SourceUnit | None]) -> bool:
    """Whether a file moves something to a GPU, or lets users choose one."""
    parsed = unit() if _MENTIONS.search(content) is not None else None
    return parsed is not None and any(_uses(node, parsed) for node in every(parsed.file.tree))


def _uses(node: ast.AST, unit: SourceUnit) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return _DEVICE.fullmatch(text) is not None
        case ast.Attribute(attr=name):
            full = unit.full_name(node)
            if full.startswith("torch.backends.cudnn."):
                return name != "enabled"  # which a script on the CPU switches off too; the others are set for a GPU
            asks = name == "current_accelerator" or _speaks(name) or full.startswith("torch.cuda.")
            return asks and _IDLE.fullmatch(full) is None
        case ast.ImportFrom(module=str(name)):
            return name.startswith("torch.cuda")
        case ast.Name(id=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            return _speaks(name)
    return False


def _speaks(name: str) -> bool:
    return name in _LIBRARIES or any(word in name.lower() for word in ("cuda", "gpu"))


_OF_LIBRARIES = re.compile(
    rb"\bconv(?:_transpose)?[123]d\s*\(|\btorchvision\.models\b|\bfrom torchvision import [^\n]*\bmodels\b|"
    rb"\btimm\.create_model\b|\bfrom timm(?:\.models)? import [^\n]*\bcreate_model\b|\bsegmentation_models_pytorch\b|"
    rb"\btimm\.models\.\w*(?:net|next)|\befficientnet_pytorch\b|\bpretrainedmodels\b|\bmonai\.networks\.(?:nets|blocks)\b|\bcreate_conv2d\b|"
    rb"\bUNet[23]D(?:Condition)?Model\b|\bConv(?:Module|NormAct|BnAct)\b|\bConv2D\b"
)
_CONSTRUCTED = re.compile(rb"\b(?:Lazy)?Conv(?:Transpose)?[123]d\s*\(")
_PARENTHESES = re.compile(rb"[()]")
_LONGEST = 1_000  # bytes of a call
_KERNEL = re.compile(rb"\bkernel_size\s*=\s*([^,()]+|\([^()]*\))\s*[,)]")
_STRIDE = re.compile(rb"\bstride\s*=\s*([^,()]+|\([^()]*\))\s*[,)]")


def convolves(content: bytes) -> bool:
    """Whether a file has convolutions other than patch embeddings, which are one matrix product each."""
    if _OF_LIBRARIES.search(content):
        return True
    return any(not _cuts_patches(_arguments(content, match.end())) for match in _CONSTRUCTED.finditer(content))


_CLASS = re.compile(r"(?:\w+\.)*(?:Lazy)?Conv(?:Transpose)?[123]d")


def uses_class_of_convolutions(tree: ast.Module) -> bool:
    """Whether code has a framework's convolution without a call of it: as a base, in a `partial`, under another name.

    A class that is only tested for, as in `isinstance(m, nn.Conv2d)`, does not count.
    """
    used: list[ast.expr | None] = []
    for node in every(tree):
        match node:
            case ast.ClassDef(bases=bases):
                used += bases
            case ast.Call(func=ast.Name(id="partial") | ast.Attribute(attr="partial"), args=[first, *_]):
                used.append(first)
            case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.keyword(value=value):
                used.append(value)
            case ast.arguments(defaults=defaults, kw_defaults=others):
                used += (*defaults, *others)
            case ast.Dict(values=values):
                used += values
            case ast.Subscript(value=ast.Tuple(elts=elements) | ast.List(elts=elements)):
                used += elements
            case ast.IfExp(body=body, orelse=other):
                used += (body, other)
            case ast.Return(value=value):
                used.append(value)
    return any(_CLASS.fullmatch(dotted(expression)) for expression in used if expression is not None)


def _arguments(content: bytes, start: int) -> bytes:
    """Return the text from behind a parenthesis to the closing one, included."""
    depth = 1
    for match in _PARENTHESES.finditer(content, start, start + _LONGEST):
        depth += 1 if match[0] == b"(" else -1
        if not depth:
            return content[start : match.end()]
    return b""


def _cuts_patches(arguments: bytes) -> bool:
    kernel, stride = _KERNEL.search(arguments), _STRIDE.search(arguments)
    return kernel is not None and stride is not None and kernel[1].strip() == stride[1].strip() != b"1"


# Libraries with a training loop that own the settings, by the name that messages show
TRAINERS = {
    "pytorch_lightning": "Lightning", "lightning": "Lightning", "lightning_fabric": "Lightning",
    "composer": "Composer", "mmengine": "MMEngine", "mmcv": "MMCV", "mmdet": "MMDetection",
    "mmcls": "MMClassification", "mmpretrain": "MMPretrain", "mmseg": "MMSegmentation",
    "detectron2": "Detectron2", "fastai": "fastai", "ignite": "Ignite", "catalyst": "Catalyst",
    "ultralytics": "Ultralytics", "super_gradients": "SuperGradients", "skorch": "skorch",
    "torchbearer": "torchbearer", "poutyne": "Poutyne", "classy_vision": "ClassyVision", "vissl": "VISSL",
    "deepspeed": "DeepSpeed", "basicsr": "BasicSR", "torchreid": "torchreid", "avalanche": "Avalanche",
    "anomalib": "Anomalib", "nnunetv2": "nnU-Net", "flash": "Flash", "pl_bolts": "Lightning Bolts",
}  # fmt: skip
_OF_TRANSFORMERS = ("Trainer", "Seq2SeqTrainer", "TrainingArguments")
FRAMEWORKS = {
    "torch": "pytorch", "tensorflow": "tensorflow", "keras": "keras", "tf_keras": "keras", "mxnet": "mxnet",
    "jax": "jax", "paddle": "paddle",
}  # fmt: skip
# Libraries that set no flags of cuDNN, neither on import nor in functions that training scripts call
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
    fvcore iopath yacs xformers bitsandbytes vit_pytorch timm_vis geffnet ffcv webdataset streaming librosa soundfile
    audioread resampy pyworld pesq pystoi auraloss jiwer editdistance Levenshtein jieba gensim spacy gym gymnasium
    batchgenerators batchgeneratorsv2 acvl_utils cityscapesscripts lvis xtcocotools nuscenes pyquaternion plyfile faiss
    motmetrics lap filterpy cython_bbox accimage dlib skvideo pywt zarr xarray netCDF4 hdf5storage mat73 torch_scatter
    torch_sparse torch_cluster spconv torchdiffeq torchmeta ml_collections jaxtyping torchtyping beartype parameterized
    prefetch_generator memory_profiler fastprogress json_tricks fastargs dominate gradio qtpy PyQt5 terminaltables glog
    easing_functions pytest distutils imp StringIO cStringIO cPickle Queue ConfigParser urllib2 urlparse monai
    torchsummaryX torchlibrosa mir_eval museval musdb mc petrel_client pyximport Cython umap filelock google ffmpeg
    bcolz hiddenlayer pyhocon inflect unidecode phonemizer warpctc_pytorch spatial_correlation_sampler inplace_abn
    dcn_v2 nnAudio julius lws submitit blobfile setproctitle matplotlib_inline mpl_toolkits dmc2gym
    wget imagesize gin Box2D swin_window_process wfdb bib_lookup regex clip open_clip pydantic fastapi flask pytz
    lxml botocore sympy ale_py dm_env dm_control pygame panopticapi mamba_ssm triton jinja2 ftfy statsmodels
    transforms3d torchfile urllib3 pyclipper opt_einsum munkres git path tree typeguard pylab mcubes mock
    tensorflow_datasets torch_harmonics torch_geometric x_transformers zmq wrapt xgboost tenacity atari_py natten
    causal_conv1d selective_scan_cuda flash_attn MultiScaleDeformableAttention pointnet2_ops ttach
    torch_audiomentations tensorly tltorch openvino tensorrt ncnn coremltools pycuda ot pettingzoo gym_minigrid
    minigrid procgen flask_cors supersuit __main__ functorch onnxsim depthwise_conv2d_implicit_gemm einx einops_exts
    asteroid_filterbanks braceexpand cvtorchvision diffq audioseal resnest imblearn mlxtend napari alt_cuda_corr torchio
    fairscale lightgbm catboost diffusers peft supervision streamlit geopandas pyproj schedulefree prodigyopt albucore
    rotary_embedding_torch vector_quantize_pytorch faster_coco_eval calflops gsplat nerfacc monotonic_align
    argbind optimi pytorch_metric_learning pytorch_optimizer tap torchao
    pydantic_settings msgspec cattrs sqlmodel cyclopts simple_parsing hydra_zen draccus modal structlog httpx uvicorn
    starlette tensordict trackio polars duckdb litdata torchcodec tomlkit platformdirs dvclive pooch
    """.split()  # noqa: SIM905 - a table of hundreds of names reads better so
)


def trainer_of(foreign: Iterable[str]) -> str:
    """Return the library that owns a program's settings, by the imported modules; '' for none."""
    for name in sorted(foreign):
        first, *rest = name.split(".")
        if first in TRAINERS:
            return TRAINERS[first]
        if first == "transformers" and rest and rest[-1] in _OF_TRANSFORMERS:
            return "Transformers' Trainer"
    return ""


def unknown(foreign: Iterable[str]) -> str:
    """Return an imported library that is not known to leave the settings alone; '' for none."""
    known = _HARMLESS | sys.stdlib_module_names
    return next((name for name in sorted(foreign) if name and name.split(".")[0] not in known), "")


def framework_of(foreign: Iterable[str]) -> str:
    """Return the framework with which a program trains; '' for none."""
    first = {name.split(".")[0] for name in foreign}
    return next((framework for name, framework in FRAMEWORKS.items() if name in first), "")


_STARTERS = (b"spawn", b"Process(", b"launch")


def insertion(unit: SourceUnit, beginning: ast.stmt) -> tuple[Location | None, str]:
    """Return where to insert a setting, and the name of `torch` there; '' if it has none.

    This is in front of the first statement of `main()`, of an installed command, or of the guard's body. If the program
    spawns processes, it is behind the imports: those processes do not inherit settings, but import the file.
    """
    body = unit.file.tree.body
    torch = _torch(body)
    apart = any(starter in unit.file.content for starter in _STARTERS)
    function, first = beginning if isinstance(beginning, Definition) else None, None
    if is_guard(beginning):
        function, first = _main(beginning, unit), beginning.body[0]
    first = first if function is None else _first(function.body)
    shadowed = function is not None and _binds(function, torch)
    if not apart and first is not None and not shadowed and first.lineno != (function or beginning).lineno:
        return _front(first, unit), torch
    after = _behind_imports(body)
    return (_front(after, unit), torch) if after is not None else (None, torch)


def _front(node: ast.stmt, unit: SourceUnit) -> Location:
    """Return the location of a statement, with its decorators."""
    first = min((decorator.lineno for decorator in getattr(node, "decorator_list", [])), default=node.lineno)
    return replace(unit.file.locate(node), line=first)


def _main(guard: ast.If, unit: SourceUnit) -> Definition | None:
    """Return the function that the guard calls, if the guard does nothing else but prepare the arguments."""
    match guard.body:
        case [*before, ast.Expr(value=ast.Call(func=ast.Name(id=name)))]:
            prepares = all(
                isinstance(node, ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom) for node in before
            )
            return unit.functions.get(name) if prepares else None
    return None


def _first(body: list[ast.stmt]) -> ast.stmt | None:
    """Return the first statement that is no docstring, declaration or import."""
    for node in body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not isinstance(node, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom):
            return node
    return None


def _behind_imports(body: list[ast.stmt]) -> ast.stmt | None:
    """Return the statement behind the last import of the module's head."""
    starts = (ast.For, ast.While, ast.FunctionDef, ast.ClassDef)
    first = next((index for index, node in enumerate(body) if isinstance(node, starts)), len(body))
    imports = [index for index, node in enumerate(body) if isinstance(node, ast.Import | ast.ImportFrom)]
    before = [index for index in imports if index < first]  # not those in the middle of the program
    if not before or imports[-1] + 1 >= len(body):
        return None
    node = body[before[-1] + 1]
    return node if node.lineno != body[before[-1]].lineno else None


def _torch(body: list[ast.stmt]) -> str:
    """Return the name to which the module's imports bind torch; '' for none."""
    names = (alias for node in body if isinstance(node, ast.Import) for alias in node.names)
    ours = (alias for alias in names if alias.name == "torch" or (alias.name.startswith("torch.") and not alias.asname))
    return next((alias.asname or "torch" for alias in ours), "")


def _binds(function: Definition, name: str) -> bool:
    """Whether a function binds the name to something else."""
    parameters = {parameter.arg for parameter in names_of.parameters(function)}
    return name in names_of.BodyNames(function.body).bound | parameters
