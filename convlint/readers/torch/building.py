"""Imports the user's modules, builds their networks on the meta device, and makes the inputs they are called with."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from convlint.model.errors import AskedWrong, InputFault
from convlint.readers import ReadOptions
from convlint.readers.inputs import InputShape, looks_like_shapes, parse_shapes, refuse_lists
from convlint.readers.references import Reference, parse_reference
from convlint.readers.torch.places import importable
from convlint.readers.torch.user_code import alone, described, ended_by, needs_values, run

CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by the number of axes


def load(reference: Reference) -> Any:
    """The object that a reference names; it is not called. Raises InputFault."""
    import_module(reference.module)
    return _attributes(sys.modules[reference.module], reference.attributes, reference.module)


def _attributes(value: Any, names: Sequence[str], whose: str) -> Any:
    for part in names:
        holder = value
        try:
            value = getattr(holder, part)
        except AttributeError:
            close = difflib.get_close_matches(part, [name for name in dir(holder) if not name.startswith("_")], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise AskedWrong(f"{whose} has no {part!r}{hint}", about="model") from None
        except Exception as error:  # some libraries import their parts when an attribute is first asked for
            raise InputFault(f"asking {whose} for {part!r} {described(error)}") from error
    return value


def import_module(name: str) -> None:
    """Imports a module; the tensors that it makes lie on the meta device. Raises InputFault."""
    before = set(sys.modules)
    try:
        with torch.device("meta"):
            alone(lambda: importlib.import_module(name))
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing and (name == missing or name.startswith(f"{missing}.")):
            imported = name.removesuffix(".py").replace("/", ".").strip(".")
            hint = f"; a module is named as it is imported: {imported}" if name.endswith(".py") else ""
            raise AskedWrong(
                f"there is no module {missing!r} in {' or '.join(importable())}, and none is installed{hint}",
                about="model",
            ) from None
        if not needs_values(error):
            raise InputFault(f"importing {name} {ended_by(error)}") from error
        top = name.partition(".")[0]
        for loaded in set(sys.modules) - before:  # half imported: start over, with real values
            if loaded == top or loaded.startswith(f"{top}."):
                del sys.modules[loaded]
        with weights_on_meta():
            run(f"importing {name}", lambda: importlib.import_module(name))


def weights_on_meta(*, but_numbers: bool = False) -> Any:
    """A context in which weights take no memory, but computed values (`torch.linspace(...).tolist()`) are real.

    What is assigned to the `data` of a weight goes to the meta device too. `but_numbers`: tensors of one element are
    real too, such as `torch.empty(1).uniform_().item()` reads.
    """
    fillers = {
        torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.randint, torch.empty_strided,
        torch.normal,
    }  # fmt: skip
    sets_data = torch.Tensor.data.__set__

    class Context(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if func == sets_data and args[0].is_meta and not args[1].is_meta:
                args = args[0], args[1].to("meta")
            of_tensors = any(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values()))
            if func in fillers and kwargs.get("device") is None and not of_tensors:
                if but_numbers:
                    tensor = func(*args, **{**kwargs, "device": "meta"})
                    return func(*args, **kwargs) if tensor.numel() == 1 else tensor
                kwargs["device"] = "meta"
            return func(*args, **kwargs)

    return Context()


def build(reference: Reference) -> Any:
    """The network that a reference names, on the meta device. Raises InputFault."""
    name = f"{reference.module}:{'.'.join(reference.attributes)}"
    value = load(reference)
    if reference.called or not isinstance(value, torch.nn.Module):
        if not callable(value):
            raise AskedWrong(
                f"{name} is a {type(value).__name__}, not an nn.Module, a class or a function", about="model"
            )
        _refuse_arguments(value, reference, name)
        factory = value
        value = call_on_meta(f"building {name}", lambda: factory(*reference.arguments, **reference.keywords))
    value = _attributes(value, reference.then, f"what {name} gives")
    if not isinstance(value, torch.nn.Module):
        raise AskedWrong(f"{name} gives a {type(value).__name__}, not a torch.nn.Module", about="model")
    return run(f"moving {name} to the meta device", lambda: _to_meta(value))


def _refuse_arguments(factory: Any, reference: Reference, name: str) -> None:
    """Raises InputFault where the arguments do not fit the signature."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # written in C, or without a signature
        return
    try:
        signature.bind(*reference.arguments, **reference.keywords)
    except TypeError as error:
        takes = f"{reference.attributes[-1]}{signature}"[:200]
        raise AskedWrong(f"{name} is not called as it wants to be: {error}; it is {takes}", about="model") from None


_MIXED = "incompatible tensor type"  # in torch's message for `weight.data = torch.Tensor(...)`, which has real values


def call_on_meta(what: str, call: Callable[[], Any]) -> Any:
    """Calls a factory on the meta device, and again with real small values where it asks for values, or sets them."""
    try:
        with torch.device("meta"):
            return run(what, call)
    except InputFault as fault:
        cause = fault.__cause__
        if cause is None or not (needs_values(cause) or _MIXED in str(cause)):
            raise
    with weights_on_meta():
        return run(what, call)


def _to_meta(module: Any) -> Any:
    on_meta = all(tensor.is_meta for tensor in chain(module.parameters(), module.buffers()))
    return module if on_meta else module.to("meta")


_IMAGE = 2  # a tensor with more axes may be an image
_MOST_VALUES = 1_000_000  # elements of a tensor that keeps its values
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def inputs_of(module: Any, options: ReadOptions) -> Arguments:
    """The arguments of the forward pass, by position and by keyword; real tensors stay real. Raises InputFault."""
    if not options.inputs:
        example = getattr(module, "example_input_array", None)  # a LightningModule has one
        if example is None:
            raise AskedWrong(
                'the input\'s shape is not known; give it, as in --input 256x3x224x224 or inputs = ["256x3x224x224"]',
                about="inputs",
            )
        return _as_arguments(example)
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    for name, text in options.inputs.items():
        are_shapes = looks_like_shapes(text)
        try:
            refuse_lists(text)
            shapes = parse_shapes(text, options.batch) if are_shapes else ()
            tensors = tuple(_tensor(shape, module) for shape in shapes)
        except InputFault as fault:
            raise AskedWrong(fault.message, about="inputs") from None
        if are_shapes:
            if not name:
                args = tensors
            elif len(tensors) != 1:
                raise AskedWrong(f"input {name!r} takes one shape, {text!r} gives {len(tensors)}", about="inputs")
            else:
                kwargs[name] = tensors[0]
            continue
        if name or ":" not in text:
            message = f"input {text[:60]!r} is neither a shape like 256x3x224x224 nor package.module:function"
            raise AskedWrong(message, about="inputs")
        value = load(parse_reference(text))
        if callable(value):
            with weights_on_meta():
                value = run(f"calling {text}", value)
        positional, keywords = _as_arguments(value)
        args = positional or args
        kwargs.update(keywords)
    return args, kwargs


def _as_arguments(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position and keyword: a mapping is keywords, a tuple or list positions, all else one argument."""
    if isinstance(value, dict):
        return (), value
    return (tuple(value) if isinstance(value, (tuple, list)) else (value,)), {}


def refuse_inputs(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises AskedWrong where the inputs do not fit the signature of the forward pass."""
    try:
        signature = inspect.signature(module.forward)
    except (TypeError, ValueError):  # without a signature
        return
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    unknown = [name for name in kwargs if name not in signature.parameters]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        close = difflib.get_close_matches(unknown[0], signature.parameters, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; it is forward{signature}"[:200]
        raise AskedWrong(f"its forward takes no {unknown[0]!r}{hint}", about="inputs")
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise AskedWrong(f"its inputs do not fit: {error}; it is forward{signature}"[:300], about="inputs") from None


def _tensor(shape: InputShape, module: Any) -> Any:
    dtype = getattr(torch, shape.dtype) if shape.dtype else None
    if dtype is None:  # that of the weights, so that a module in half precision needs no dtype in --input
        floating = (tensor.dtype for tensor in module.parameters() if tensor.dtype.is_floating_point)
        dtype = next(floating, torch.float32)
    tensor = torch.empty(shape.sizes, dtype=dtype, device="meta")
    if not shape.channels_last:
        return tensor
    if tensor.dim() not in CHANNELS_LAST:
        raise InputFault(f"channels_last needs 4 or 5 sizes, not {tensor.dim()}")
    return tensor.to(memory_format=CHANNELS_LAST[tensor.dim()])


def on_meta(value: Any, *, images_only: bool = False) -> Any:
    """The structure with its tensors on the meta device; `images_only`: only those that may be images, or are large."""

    def moved(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.is_meta:
            return leaf
        image = leaf.dim() > _IMAGE and leaf.is_floating_point()
        keeps = images_only and not image and leaf.numel() <= _MOST_VALUES
        return leaf if keeps else leaf.to("meta")

    return tree_map(moved, value)


def leaves(value: Any) -> list[Any]:
    """The tensors in a structure. Raises InputFault where it holds itself."""
    try:
        return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    except RecursionError:
        raise InputFault("its inputs hold themselves, or are nested without end") from None
