"""The rules' language is closed: what is in it computes, everything else is refused when the rule is loaded."""

import ast
import builtins
import math
from typing import Any

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from convlint.model.runtime import Version
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.expr import (
    FUNCTIONS,
    GLOBALS,
    UNKNOWN,
    Expr,
    ExprError,
    Type,
    UnknownValue,
    function,
)
from convlint.rulebook.grammar import compile_expr, decision_code, expression_code

VOCABULARY: dict[str, Type] = {
    "C": "number", "K": "number", "name": "text", "first": "truth", "gpu.sms": "number", "gpu.name": "text",
    "gpu.cc": "version", "training": "truth",
}  # fmt: skip


class Gpu:
    sms = 108
    name = "A100"
    cc = Version("8.0")


VALUES: dict[str, Any] = {"C": 62, "K": 128, "name": "stem", "first": False, "training": True, "gpu": Gpu()}


def compiled(text: str) -> Expr:
    return compile_expr(text, VOCABULARY)


def value(text: str, **values: Any) -> Any:
    return compiled(text).evaluate({**VALUES, **values})


@for_each(
    "text, expected",
    [
        ("C + K * 2 - 1", 317),
        ("K / C", 128 / 62),
        ("K // C", 2),
        ("K % C", 4),
        ("-C", -62),
        ("C % 8 == 0 and K % 8 == 0", False),
        ("C % 8 == 0 or K % 8 == 0", True),
        ("not first", True),
        ("1 < C < 100", True),
        ("C if first else K", 128),
        ("'a' if training else 'b'", "a"),
        ("name in ['stem', 'head']", True),
        ("name not in ('head',)", True),
        ("C in [62, 64]", True),
        ("ceil_to(C, 8)", 64),
        ("floor_to(C, 8)", 56),
        ("ceil_to(64, 8)", 64),
        ("min(C, K, 5)", 5),
        ("max(C, K)", 128),
        ("abs(C - K)", 66),
        ("ceil(C / 8)", 8),
        ("ceil(-0.5)", 0),
        ("gcd(C, 64)", 2),
        ("64 // gcd(K, 96)", 2),
        ("gcd(0 - 12, 8)", 4),
        ("gcd(K / 2, 6.0)", 2),
        ("gcd(0, C)", 62),
        ("gcd(0, 0)", 0),
        ("gpu.sms * 2", 216),
        ("gpu.name == 'A100'", True),
        ("gpu.cc >= '7.5'", True),
        ("gpu.cc == '8'", True),
        ("known(C)", True),
        ("known(gpu.sms)", True),
        ("given(training)", True),
        ("given(first)", False),
        ("not given(first)", True),
        ("given(C)", True),
        ("given(C - 62)", False),
        ("given(name)", True),
        ("given(gpu.cc)", True),
        ("given(gpu.cc >= '9.0')", False),
        ("given(C < K) and given(given(C) and K == 128)", True),
        ("given(true if training else first)", True),
        ("1 if given(known(K) and training) else 2", 1),
        ("true and not false", True),
        ("True", True),
        ("  C  ", 62),
        ("1e3", 1000.0),
    ],
)
def test_what_the_language_says(text: str, expected: Any) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "kind", "names"),
    [
        ("C + gpu.sms", "number", {"C", "gpu.sms"}),
        ("name", "text", {"name"}),
        ("known(K) and first", "truth", {"first"}),  # K is asked about, not needed
        ("known(K) and K > 1", "truth", {"K"}),
        ("gpu.cc", "version", {"gpu.cc"}),
        ("gcd(C, K)", "number", {"C", "K"}),
        ("given(K)", "truth", {"K"}),
        ("given(gpu.sms > C) and first", "truth", {"gpu.sms", "C", "first"}),
        ("given(known(K) and first)", "truth", {"first"}),
        ("true", "truth", set()),
    ],
)
def test_types_and_names(text: str, kind: Type, names: set[str]) -> None:
    assert (compiled(text).type, compiled(text).names) == (kind, names)


@for_each(
    "text, message",
    [
        ("C ** 2", "BinOp is not part of the language"),
        ("C << 2", "BinOp is not part of the language"),
        ("C & 2", "BinOp"),
        ("C @ K", "BinOp"),
        ("+C", "UnaryOp is not part of the language"),
        ("~C", "UnaryOp"),
        ("C is K", "Is is not part of the language"),
        ("[C, K]", "List is not part of the language"),
        ("(C, K)", "Tuple"),
        ("{C: K}", "Dict"),
        ("{C}", "Set"),
        ("C[0]", "Subscript"),
        ("lambda: C", "Lambda"),
        ("[C for C in (1, 2)]", "ListComp"),
        ("(C for C in [1])", "GeneratorExp"),
        ("f'{C}'", "JoinedStr"),
        ("(D := C)", "NamedExpr"),
        ("*C", "not an expression"),
        ("await C", "not"),
        ("C; K", "not an expression"),
        ("D = C", "not an expression"),
        ("import os", "not an expression"),
        ("", "not an expression"),
        ("C +", "not an expression"),
        ("C\x00", "not an expression"),
        ("\ud800", "not an expression"),
        ("1if C else 2", "not an expression"),
        ("'\\d' == name", "not an expression"),
        ("None", "None is not part of the language"),
        ("...", "Ellipsis is not part of the language"),
        ("1j", "1j is not part of the language"),
        ("b'x'", "b'x' is not part of the language"),
        ("X", "unknown name 'X'"),
        ("gpu.smss", "unknown name 'gpu.smss'; did you mean 'gpu.sms'?"),
        ("gpu", "unknown name 'gpu'"),
        ("gpu.__class__", "unknown name 'gpu.__class__'"),
        ("__builtins__", "unknown name"),
        ("name.upper", "unknown name"),
        ("'x'.upper", "Constant is not part of the language here"),
        ("(C + K).real", "BinOp is not part of the language here"),
        ("a" + ".a" * 249, "unknown name"),
        ("known(a" + ".a" * 240 + ")", "unknown name"),
        ("eval('1')", "unknown function 'eval'"),
        ("ciel(C)", "unknown function 'ciel'; did you mean 'ceil'?"),
        ("gpu.sms(C)", "unknown function 'gpu.sms'"),
        ("min(C)(K)", "Call is not part of the language here"),
        ("C()", "unknown function 'C'"),
        ("min(C)", "min takes two or more arguments"),
        ("ceil(C, K)", "ceil takes 1 arguments"),
        ("ceil_to(C, multiple=8)", "ceil_to takes 2 arguments"),
        ("min(*C)", "min takes two or more"),
        ("max(C, name)", "name is a text, a number belongs here"),
        ("known(1)", "known() takes a name"),
        ("known(C + 1)", "known() takes a name"),
        ("known(X)", "unknown name 'X'"),
        ("gcd(C)", "gcd takes 2 arguments"),
        ("gcd(C, K, 2)", "gcd takes 2 arguments"),
        ("gcd(C, name)", "name is a text, a number belongs here"),
        ("gcd(first, C)", "first is a truth, a number belongs here"),
        ("given()", "given takes 1 arguments"),
        ("given(C, K)", "given takes 1 arguments"),
        ("given(C=K)", "given takes 1 arguments"),
        ("given(*C)", "Starred is not part of the language"),
        ("given(1)", "given() asks about a name"),
        ("given(true)", "given() asks about a name"),
        ("given(known(C))", "given() asks about a name"),
        ("given(X)", "unknown name 'X'"),
        ("given(C + name)", "name is a text, a number belongs here"),
        ("given(C) + 1", "given(C) is a truth, a number belongs here"),
        ("given(C ** 2)", "BinOp is not part of the language"),
        ("given([C])", "List is not part of the language"),
        ("givn(C)", "unknown function 'givn'; did you mean 'given'?"),
        ("given(" * 40 + "C" + ")" * 40, "nested deeper than 20 levels"),
        ("C + name", "name is a text, a number belongs here"),
        ("name + name", "name is a text"),
        ("name * 1000", "name is a text"),
        ("C + first", "first is a truth, a number belongs here"),
        ("not C", "C is a number, a truth belongs here"),
        ("C and K", "C is a number, a truth belongs here"),
        ("C if K else 1", "K is a number, a truth belongs here"),
        ("C if first else name", "name is a text, a number belongs here"),
        ("C == name", "compares a number with a text"),
        ("C == '62'", "compares a number with a text"),
        ("name < 'x'", "a text has no order"),
        ("first < training", "a truth has no order"),
        ("gpu.cc < 8.0", "compares a version with a number"),
        ("'8.0' < gpu.cc", "compares a text with a version"),
        ("gpu.cc < 'new'", "a version is compared with text such as '8.9'"),
        ("gpu.cc == gpu.name", "a version is compared with text such as '8.9'"),
        ("gpu.cc < '8.0' < '9.0'", "a text has no order"),
        ("C in K", "what follows `in` must be a list of constants"),
        ("C in []", "what follows `in` must be a list of constants"),
        ("C in [K]", "what follows `in` must be a list of constants"),
        ("name in 'stem'", "what follows `in` must be a list of constants"),
        ("C in ['62']", "'62' is a text, a number belongs here"),
        ("first == training in [true]", "`in` cannot stand in a chain"),
        ("C in [1] == first", "`in` cannot stand in a chain"),
        ("9999999999999", "numbers go up to 1000000000000"),
        ("1e400", "numbers go up to 1000000000000"),
        ("0x" + "f" * 400, "numbers go up to"),
        ("1" + "0" * 499, "numbers go up to"),
        ("C" + " + C" * 200, "longer than 500 characters"),
        ("C" + "+C" * 100, "nested deeper than 20 levels"),
        ("-" * 400 + "C", "nested deeper than 20 levels"),
        ("not " * 100 + "first", "nested deeper than 20 levels"),
        ("(" * 240 + "C" + ")" * 240, "not an expression"),
        ("C if first else " * 30 + "C", "nested deeper than 20 levels"),
    ],
)
def test_everything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(ExprError) as caught:
        compiled(text)
    assert message in caught.value.message
    assert 0 <= caught.value.offset <= len(text)


@pytest.mark.parametrize(
    "text",
    ["C + 1", "-C", "C == 62", "C != 62", "C in [62]", "K < C", "C if known(C) or C > 1 else 0", "min(C, K)", "abs(C)",
     "ceil_to(C, 8)", "ceil(C)", "gcd(C, 8)", "gcd(8, C)", "C % 8", "K // C", "not (C > 1)", "K == 128 and C == 1"],
)  # fmt: skip
def test_using_what_is_unknown_raises(text: str) -> None:
    with pytest.raises(UnknownValue):
        value(text, C=UNKNOWN)


@pytest.mark.parametrize("text", ["first", "not first", "first or training", "1 if first else 2"])
def test_an_unknown_truth_decides_nothing(text: str) -> None:
    with pytest.raises(UnknownValue):
        bool(value(text, first=UNKNOWN))


def test_what_belongs_to_the_unknown_is_unknown() -> None:
    assert value("known(gpu.sms)", gpu=UNKNOWN) is False
    assert value("gpu.sms", gpu=UNKNOWN) is UNKNOWN
    with pytest.raises(UnknownValue):
        value("gpu.sms > 1", gpu=UNKNOWN)


def test_what_is_settled_without_the_unknown_stands() -> None:
    assert value("K == 1 and C == 1", C=UNKNOWN) is False
    assert value("K == 128 or C == 1", C=UNKNOWN) is True
    assert value("K if not first else C", C=UNKNOWN) == 128
    assert value("known(C) and C > 1", C=UNKNOWN) is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("given(C)", False), ("given(C > 1)", False), ("given(K > 1 or C > 1)", False), ("not given(C > 1)", True),
        ("given(gpu.sms)", False), ("given(gpu.sms > 1)", False), ("given(gpu.cc)", False), ("given(name)", False),
        ("given(given(C) or K > 1)", False), ("given(K)", True), ("known(C) or given(K)", True),
        ("given(first)", False), ("given(not first)", False), ("given(gcd(C, 0) > 1)", False),
    ],
)  # fmt: skip
def test_given_never_asks_for_what_is_unknown(text: str, expected: bool) -> None:
    assert value(text, C=UNKNOWN, gpu=UNKNOWN, name=UNKNOWN, first=UNKNOWN) is expected


def test_given_is_not_0_and_not_empty() -> None:
    assert value("given(C)", C=0) is value("given(name)", name="") is value("given(C / 2)", C=0.0) is False
    assert value("given(gpu.sms) and given(name)", name="x") is True


def test_given_divides_by_zero_as_anything_does() -> None:
    with pytest.raises(ExprError, match="divides by zero"):
        value("given(K % C)", C=0)


@pytest.mark.parametrize(("text", "C"), [("gcd(C, 2)", 0.5), ("gcd(2, C / 4)", 62), ("gcd(C, 2)", math.inf)])
def test_a_fraction_has_no_divisor(text: str, C: float) -> None:
    with pytest.raises(ExprError, match="takes the gcd of a fraction"):
        value(text, C=C)


def test_an_expression_holds_only_where_it_is_known_to() -> None:
    assert compiled("C > 1").holds(dict(VALUES)) is True
    assert compiled("C < 1").holds(dict(VALUES)) is False
    assert compiled("C > 1").holds({**VALUES, "C": UNKNOWN}) is False
    assert compiled("first").holds({**VALUES, "first": UNKNOWN}) is False


@pytest.mark.parametrize("text", ["C // 0", "C % (K - 128)", "C / 0", "ceil_to(C, 0)"])
def test_division_by_zero_names_the_expression(text: str) -> None:
    with pytest.raises(ExprError, match="divides by zero"):
        value(text)


@pytest.mark.parametrize("text", ["C * C * C", "C * K + 1"])
def test_numbers_stay_within_reach(text: str) -> None:
    with pytest.raises(ExprError, match="grow too large"):
        value(text, C=10**100, K=10**100)


def test_ceil_of_what_is_no_number() -> None:
    with pytest.raises(ExprError, match="grow too large"):
        value("ceil(C - K)", C=math.inf, K=math.inf)
    with pytest.raises(ExprError, match="grow too large"):
        value("C / 3", C=10**400)


@given(a=st.integers(0, 2**31), b=st.integers(1, 2**31))
def test_rounding_to_multiples(a: int, b: int) -> None:
    up, down = value("ceil_to(C, K)", C=a, K=b), value("floor_to(C, K)", C=a, K=b)
    assert up % b == down % b == 0
    assert down <= a <= up < a + b
    assert down > a - b


@given(a=st.integers(0, 2**31), b=st.integers(1, 2**31))
def test_gcd_divides_both_and_leaves_nothing_in_common(a: int, b: int) -> None:
    common = value("gcd(C, K)", C=a, K=b)
    assert a % common == b % common == 0
    assert value("gcd(C, K)", C=a // common, K=b // common) == 1


@given(value_=st.floats(-1e12, 1e12))
def test_ceil_is_the_ceiling(value_: float) -> None:
    assert value("ceil(C)", C=value_) == math.ceil(value_)


TOKENS = [
    "C", "K", "name", "first", "gpu.sms", "gpu.cc", "(", ")", "[", "]", ",", "+", "-", "*", "/", "//", "%", "<", "<=",
    "==", "!=", "and", "or", "not", "in", "if", "else", "min(", "ceil_to(", "known(", "given(",
    "gcd(", "1", "2.5", "0", "'x'", "'8.0'",
    "**", ".", ":", "lambda", "=", "True", "None",
]  # fmt: skip
tokens = st.lists(st.sampled_from(TOKENS), max_size=14).map(" ".join)
RESULTS: dict[Type, tuple[type, ...]] = {
    "number": (int, float),
    "text": (str,),
    "truth": (bool,),
    "version": (Version,),
}


@pytest.mark.slow
@given(text=tokens | st.text(max_size=40))
def test_any_text_computes_or_is_refused(text: str) -> None:
    try:
        expr = compiled(text)
    except ExprError:
        return
    for values in (VALUES, {**VALUES, "C": UNKNOWN, "gpu": UNKNOWN}):
        try:
            result = expr.evaluate(dict(values))
        except (ExprError, UnknownValue):
            continue
        assert result is UNKNOWN or isinstance(result, RESULTS[expr.type])


@for_each("rule", load_rulebook().rules)
def test_no_rule_reaches_a_name_beyond_the_languages_own(rule: Any) -> None:
    """Names of Python's own, and those of the facts, are never looked up but in the facts."""
    nodes = [node for expr in _expressions(rule) for node in ast.walk(ast.parse(expr.text.strip(), mode="eval"))]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    code = rule.decision.code
    assert set(code.co_names) - attributes <= {*FUNCTIONS, "UNKNOWN", "bounded"}
    assert code.co_varnames[0] == "facts"
    assert all(name.startswith("let_") for name in code.co_varnames[1:])


def _expressions(rule: Any) -> list[Any]:
    when, let, check = rule.decision.when, rule.decision.let, rule.decision.check
    return [check, *(expr for _, expr in let), *([when] if when else [])]


@pytest.mark.parametrize("text", ["(lambda: 1)()", "[x for x in ()]", "f'{C}'", "{'a': 1}", "C[0]", "(C := 1)"])
def test_a_tree_that_was_not_checked_is_not_compiled(text: str) -> None:
    with pytest.raises(TypeError, match="was not checked"):
        expression_code(ast.parse(text, mode="eval").body)


def test_no_builtin_is_in_reach() -> None:
    """Not even by a fact's name: it is looked up among the facts, and nowhere else."""
    assert GLOBALS["__builtins__"] == {}
    assert not {"open", "eval", "getattr", "__import__"} & set(GLOBALS) & set(dir(builtins))
    value = function(expression_code(ast.parse("open", mode="eval").body), GLOBALS)
    with pytest.raises(KeyError):
        value({})
    assert value({"open": 3}) == 3


def tree(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("when", "let", "check", "result"),
    [
        (None, [], "C == 3", True),
        ("C == 4", [], "C == 3", None),  # the rule does not apply
        ("C == 3", [], "C == 4", False),
        (None, [("a", "C + 1"), ("b", "a * 2")], "b == 8", True),  # later names read earlier ones
        (None, [("C", "C + 1")], "C == 4", True),
        (None, [], "true and not false", True),  # YAML's spelling
        (None, [], "known(C) and not known(D)", True),
    ],
)
def test_a_rule_is_one_function_of_its_facts(when: str | None, let: list[Any], check: str, result: Any) -> None:
    steps = [(name, tree(text), True) for name, text in let]
    code = decision_code(None if when is None else tree(when), steps, tree(check))
    facts = {"C": 3, "D": UNKNOWN}
    assert function(code, GLOBALS)(facts) is result
    assert {name for name, _ in let} <= facts.keys()  # for the messages


def test_numbers_that_let_names_are_bounded() -> None:
    code = decision_code(None, [("a", tree("C * C"), True)], tree("a > 1"))
    with pytest.raises(OverflowError):
        function(code, GLOBALS)({"C": 2**256})
    assert function(code, GLOBALS)({"C": 2**255}) is True
