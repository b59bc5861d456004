"""Mutated inputs: the same kind and seed always give the same file."""

from collections.abc import Callable
from random import Random

from . import seeds
from .message_mutations import in_message
from .mutations import as_json, in_bytes, in_document, in_text

EXPRESSIONS = (
    "groups == 1 and gpu.tensor_cores and C > 4", "C % align == 0 and K % align == 0",
    "ceil_to(C, 8) - C < min(K, 3, N)",
    "dtype in ('fp16', 'bf16') or not P", "1 if C else (2 if K else 3)", "-C + -(-K // 2) * abs(H - W)",
)  # fmt: skip
COMMENTS = (
    "a: 1  # convlint: ignore[CL102, channel-alignment] until 2020-01-01 reason\n"
    "# convlint: ignore-file[CL1] x\n- b # convlint: ignore\n"
)


def _spec(random: Random) -> bytes:
    which = random.randrange(5)
    if which <= 1:
        return as_json(in_document(seeds.SPEC, random)).encode()
    if which == 2:
        return in_bytes(seeds.SPEC_TEXT.encode(), random, as_json(seeds.SPEC).encode())
    return in_text(seeds.SPEC_TEXT, random).encode("utf-8", "surrogatepass")


def _onnx(random: Random) -> bytes:
    content = seeds.onnx_model()
    return in_bytes(content, random, content) if random.randrange(4) == 0 else in_message(content, random)


def _archive(pack: Callable[[object], bytes], name: str) -> Callable[[Random], bytes]:
    def make(random: Random) -> bytes:
        document = seeds.json_seed(name)
        which = random.randrange(12)
        if which == 0:
            return in_bytes(pack(document), random, pack({}))
        if which == 1:
            return pack(in_bytes(as_json(document).encode(), random))
        return pack(as_json(in_document(document, random)))

    return make


def _safetensors(random: Random) -> bytes:
    which = random.randrange(6)
    if which == 0:
        return in_bytes(seeds.safetensors(seeds.HEADER), random)
    if which == 1:
        return seeds.safetensors(in_bytes(as_json(seeds.HEADER).encode(), random))
    return seeds.safetensors(as_json(in_document(seeds.HEADER, random)).encode())


def _index(random: Random) -> bytes:
    index = {"metadata": {"total_size": 1}, "weight_map": {"a.weight": "x.safetensors", "b.weight": "y.safetensors"}}
    return as_json(in_document(index, random)).encode()


def _text(seed: str) -> Callable[[Random], bytes]:
    return lambda random: (
        in_bytes(seed.encode(), random)
        if random.randrange(5) == 0
        else in_text(seed, random).encode("utf-8", "surrogatepass")
    )


def _baseline(random: Random) -> bytes:
    import json

    return as_json(in_document(json.loads(seeds.BASELINE), random)).encode()


# kind -> suffix, what makes one input
KINDS: dict[str, tuple[str, Callable[[Random], bytes]]] = {
    "spec": (".yaml", _spec),
    "onnx": (".onnx", _onnx),
    "pt2": (".pt2", _archive(seeds.pt2, "program.json")),
    "keras": (".keras", _archive(seeds.keras, "config.json")),
    "safetensors": (".safetensors", _safetensors),
    "index": (".safetensors.index.json", _index),
    "rule": (".yaml", _text(seeds.RULE)),
    "config": (".toml", _text(seeds.TOML)),
    "baseline": (".json", _baseline),
    "expression": (".txt", lambda random: in_text(random.choice(EXPRESSIONS), random).encode("utf-8", "surrogatepass")),
    "comments": (".txt", _text(COMMENTS)),
}
MODELS = ("spec", "onnx", "pt2", "keras", "safetensors", "index")


def content(kind: str, seed: int) -> bytes:
    """The input of that kind and seed."""
    return KINDS[kind][1](Random(f"{kind}:{seed}"))
