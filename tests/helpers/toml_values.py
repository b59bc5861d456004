"""Values that Hypothesis draws, and how TOML writes them."""

from hypothesis import strategies as st

names = st.text(alphabet="abcd.\"'\\ \u00e9#[]=", min_size=1, max_size=5)
values = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text(alphabet="ab\"'\\\n#[]{}=,", max_size=6)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=10,
)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else quoted(value) if isinstance(value, str) else str(value)
