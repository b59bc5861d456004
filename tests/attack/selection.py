"""Selects the attacks of the long run (all) and of the short run (one or more of each kind)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from . import configs, environments, filesystems, models, modules, names, outputs
from .contract import Attack

GENERATORS: Mapping[str, Callable[[], Iterator[Attack]]] = {
    "models": models.attacks, "configs": configs.attacks, "names": names.attacks, "outputs": outputs.attacks,
    "filesystems": filesystems.attacks, "environments": environments.attacks, "modules": modules.attacks,
}  # fmt: skip
# an attack whose whole name this matches is part of the short run
SHORT: Mapping[str, str] = {
    "models": r"onnx_.*|(pt2|keras|safetensors)_(?!.*_(true|minus_one|float|digits|nan)$).*"
    r"|spec_(C|name|padding|input)_\d\d"
    r"|spec_(layers_of_numbers_4_mb|inputs_4_mb|unknown_targets_100_kb|chain_of_20000|.*bomb|sparse_3_gb|deep_lists)",
    "configs": r"convlint.toml_(fifo|looping_link|link_to_zeros|sparse_3_gb|dotted_key|many_file_ignores|control_key)"
    r"|pyproject.toml_(fifo|folder|looping_link|sparse_3_gb|words_of_tool|dots_of_tool|dotted_below_tool|nested_tables)"
    r"|rule_(squares|deep_expression|many_lets|explained|shown_(control|command)_title|file_(fifo|sparse_3_gb))"
    r"|calibration_(fifo|sparse_3_gb|dotted_key|many_groups|command_device|no_(time|launch))"
    r"|baseline_(fifo|sparse_3_gb|deep|commands)|(argument|exclude|file_ignores|layer_ignores)_stars|extends_for_long",
    "names": r"(layers|faults|folder)_check_(text|github|markdown)|layers_(estimate_(text|csv)|export|sweep)"
    r"|onnx_layers_export"
    r"|typed_(export|gpu|command|figure)_(00|07|14)|evil_check_(plain|folder|absolute)_evil:Net(\.yaml)?"
    r"|evil_(jobs|estimate|export|sweep)_evil:Net(\.yaml)?|evil_(folder|dangling)|dash_o.*",
    "outputs": r"over_(input|symbolic|hard|config|extended)_check_folder"
    r"|over_input_(write_baseline|estimate|export|github_summary)"
    r"|two_.*|output_.*|named_config|.*mode_kept.*|link_kept|hard_link_kept|planted_temporary",
    "filesystems": r"cache_(no_folder|read_only|planted_(fifo|sparse_3_gb|garbage|cut|any_mode))"
    r"|folder_.*|replaced_.*|path_too_long"
    r"|input_(fifo|link_to_memory|looping_link|folder)\..*",
    "environments": r"std(out|err)_(closed|full|broken)_(check|help|usage|stdin)|stdin_closed.*"
    r"|all_closed_check|stdin_huge"
    r"|env_(columns_huge|lang_c|no_home|home_here|completing|ascii)|shadowed_(jobs|check|packages_jobs|jobs_onnx|onnx)"
    r"|sig(int|term)_(reading_0.0|jobs_0.15)|limit_(files_12|no_output|memory)",
    "modules": r"(keyboard_interrupt|os_exit_by_ctypes|kill|chdir|prints|replaces_stdout|closes_everything|forks"
    r"|fork_escapes|atexit_zero|atexit_raises|thread_stays|signal_handlers|patches_json)_import|loops_deaf_init"
    r"|result_hostile_name"
    r"|signal_2_one",
}
_TOGETHER = 40
# what a whole process is the matter of, not one of its inputs
_APART = re.compile(r"path_too_long|replaced_|dash_o")


def short(kind: str, *, every: bool = False) -> list[Attack]:
    """The attacks of one kind that belong to the short run, or all."""
    pattern = re.compile(SHORT[kind])
    return [attack for attack in GENERATORS[kind]() if every or pattern.fullmatch(attack.name)]


def grouped(attacks: Sequence[Attack], most: int = _TOGETHER) -> list[list[Attack]]:
    """Attacks by inputs alone in groups that one process can read; all others by themselves, the longest first."""
    single: list[list[Attack]] = []
    shared: dict[tuple[object, ...], list[Attack]] = {}
    for attack in attacks:
        if _shares(attack):
            shared.setdefault((attack.bare, attack.options), []).append(attack)
        else:
            single.append([attack])
    groups = [members[at : at + most] for members in shared.values() for at in range(0, len(members), most)]
    return [*groups, *single]


def _shares(attack: Attack) -> bool:
    """Whether an attack is by its inputs alone, and by ones that can only be read or refused."""
    plain = Attack(name=attack.name)
    whole = ("argv", "env", "stdin", "limits", "says", "outputs", "alone", "extra_s")
    ordinary = all(getattr(attack, field) == getattr(plain, field) for field in whole)
    return ordinary and bool(attack.inputs) and not attack.exits & {0, 2} and not _APART.match(attack.name)
