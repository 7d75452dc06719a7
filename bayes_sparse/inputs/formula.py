"""A formula of names: the columns it makes, and what new rows need of it, kept as JSON.

formulaic parses and evaluates it. A formula is Python inside, and one in a tree that came from somebody else's file is
somebody else's code: so only names of columns, numbers, arithmetic and a list of known functions are ever evaluated, at
a fit and at a prediction alike.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.categories import category_of, check_levels, label_of

__all__ = ["evaluated", "formula_found", "parse", "variables_of"]

_OF_NUMPY = frozenset(
    [
        "abs",
        "arcsinh",
        "cos",
        "exp",
        "expm1",
        "log",
        "log10",
        "log1p",
        "log2",
        "maximum",
        "minimum",
        "sign",
        "sin",
        "sqrt",
        "square",
        "tanh",
    ]
)
_CONTRASTS = frozenset(["treatment", "sum", "helmert", "diff", "poly", "SAS"])
_OF_FORMULAIC = frozenset(["C", "I", "bs", "cc", "center", "cr", "cs", "poly", "scale", "standardize"])
_LARGE = ast.Pow | ast.LShift | ast.Mult | ast.MatMult  # of numbers alone they may take any time and memory
_SIGNS = (ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.Load)
_ALLOWED = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.Constant,
    ast.keyword,
    ast.List,
    ast.Tuple,
)
_LONGEST = 10_000  # characters


def parse(formula: str, names: Sequence[str]) -> tuple[str | None, Any]:
    """The target's name, if there is a left side, and the right side as formulaic has it, of known functions alone.

    A dot on the right stands for all columns of these names but the target.
    """
    try:
        import formulaic
    except ImportError:
        raise ImportError('A formula is read by formulaic: pip install "bayes_sparse[formula]".') from None
    if not isinstance(formula, str) or len(formula) > _LONGEST:
        raise ValueError(f"A formula is a string such as 'y ~ a + b', got {type(formula).__name__}.")
    try:
        parsed: Any = formulaic.Formula(formula, _context={"__formulaic_variables_available__": list(names)})
    except Exception as problem:  # its errors have many kinds
        said = str(problem).splitlines()[0].rstrip(".") if str(problem) else type(problem).__name__
        if "`|`" in said:
            said = "effects of groups such as (1|site) are fitted by a Bambi model, bs.fit(bambi.Model(...))"
        raise ValueError(f"The formula {formula!r} cannot be read: {said}.") from None
    left, right = (None, parsed) if isinstance(parsed, formulaic.SimpleFormula) else (parsed.lhs, parsed.rhs)
    if not isinstance(right, formulaic.SimpleFormula):
        raise ValueError(f"The formula {formula!r} has several parts, and one such as 'y ~ a + b' is read.")
    for _ in variables_of(right):
        pass
    return _target(left), right


def _target(left: Any) -> str | None:
    if left is None:
        return None
    factors = [factor for term in left for factor in term.factors]
    if len(factors) != 1 or factors[0].eval_method.value != "lookup":
        raise ValueError(f"The left side of a formula is the name of a column, not {str(left)!r}: make that a column.")
    return str(factors[0].expr)


def variables_of(right: Any) -> Iterator[tuple[str, list[str]]]:
    """Each term and the columns that it names; refused where it holds anything that is not known to be harmless."""
    for term in right:
        names: dict[str, None] = {}
        for factor in term.factors:
            if factor.eval_method.value == "lookup":
                names[str(factor.expr)] = None
            elif factor.eval_method.value == "python":
                names |= dict.fromkeys(_names_in(str(factor.expr)))
        yield str(term), list(names)


def _names_in(expression: str) -> list[str]:
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        raise ValueError(f"The formula's {expression!r} cannot be read: columns need plain names there.") from None
    return _walked(tree, expression)


def _walked(node: ast.AST, expression: str) -> list[str]:
    """Names of columns; whatever is not on the list is refused."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Call) and _is_known(node.func):
        return [name for own in (*node.args, *node.keywords) for name in _walked(own, expression)]
    if _is_contrast(node):
        return []
    large = isinstance(node, ast.BinOp) and isinstance(node.op, _LARGE)
    if not isinstance(node, (*_ALLOWED, *_SIGNS)) or (
        large and not any(isinstance(n, ast.Name) for n in ast.walk(node))
    ):
        known = ", ".join(sorted(_OF_FORMULAIC | _OF_NUMPY))
        raise ValueError(
            f"The formula's {expression!r} holds {ast.unparse(node)!r}, which is not evaluated: there are arithmetic, "
            f"{known}; compute anything else as a column of the frame."
        )
    return [name for own in ast.iter_child_nodes(node) for name in _walked(own, expression)]


def _is_known(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in _OF_FORMULAIC | _OF_NUMPY
    return _is_contrast(function) or (_is_of(function, "np") and getattr(function, "attr", "") in _OF_NUMPY)


def _is_contrast(node: ast.AST) -> bool:
    return _is_of(node, "contr") and getattr(node, "attr", "") in _CONTRASTS


def _is_of(node: ast.AST, module: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == module


def formula_found(formula: str, parts: Mapping[str, Any]) -> tuple[FloatArray, dict[str, Any]]:
    """The columns that a formula makes of the rows of a fit, and what new rows need to know."""
    right = parse(formula, list(parts))[1]
    levels = {}
    for name, part in parts.items():
        held = category_of(part, name) if np.asarray(part).dtype.kind != "b" else None
        if held is not None:
            check_levels(held, name)
            levels[name] = [str(level) for level in held.categories]
    first = {name: _scalar(part[0]) for name, part in parts.items()}
    found: dict[str, Any] = {"text": formula, "levels": levels, "first": first}
    matrix, spec = _matrix(right, parts, found, {}, {})
    names = [_tidy(str(name)) for name in spec.column_names]
    terms = [str(term) for term, own in spec.term_slices.items() for _ in range(*own.indices(len(names)))]
    inside = [j for j, name in enumerate(names) if name != "Intercept"]
    if not inside:
        raise ValueError("The formula has no terms but the intercept: name some columns.")
    found |= {
        "columns": [names[j] for j in inside],
        "terms": [terms[j] for j in inside],
        "variables": dict(variables_of(right)),
        "intercept": len(inside) < len(names),
        "transforms": {expr: _stored(state, expr) for expr, state in spec.transform_state.items()},
        "categories": {
            expr: [_scalar(level) for level in state["categories"]]
            for expr, (kind, state) in spec.encoder_state.items()
            if kind.value == "categorical"
        },
    }
    return matrix[:, inside], found


def evaluated(found: dict[str, Any], parts: Mapping[str, Any]) -> FloatArray:
    """The same columns of new rows."""
    right = parse(found["text"], list(found["first"]))[1]
    strange = [name for _, names in variables_of(right) for name in names if name not in parts]
    if strange:
        raise ValueError(f"The stored formula names {strange[0]!r}, which is not one of its columns.")
    transforms = {expr: _restored(state) for expr, state in found["transforms"].items()}
    matrix, spec = _matrix(right, parts, found, transforms, found["categories"])
    names = [_tidy(str(name)) for name in spec.column_names]
    if not {*found["columns"]} <= {*names}:
        raise ValueError("The formula makes other columns of these rows than of those fitted: give the same kinds.")
    return matrix[:, [names.index(name) for name in found["columns"]]]


def _matrix(
    right: Any, parts: Mapping[str, Any], found: dict[str, Any], transforms: dict[str, Any], categories: dict[str, Any]
) -> tuple[FloatArray, Any]:
    from formulaic import ModelSpec
    from formulaic.errors import DataMismatchWarning
    from formulaic.parser.types import Factor

    frame = pd.DataFrame({name: _column(part, name, found["levels"].get(name)) for name, part in parts.items()})
    kinds = {expr: (Factor.Kind.CATEGORICAL, {"categories": own}) for expr, own in categories.items()}
    spec = ModelSpec(
        formula=right, materializer="pandas", output="numpy", transform_state=transforms, encoder_state=kinds
    )
    context = {name: getattr(np, name) for name in _OF_NUMPY}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", DataMismatchWarning)
            made: Any = spec.get_model_matrix(frame, context=context, na_action="ignore")
    except DataMismatchWarning as problem:
        strange = re.sub(r"np\.\w+\((.*?)\)", r"\1", str(problem).partition("{")[2].partition("}")[0])
        raise ValueError(
            f"A category of the formula has levels that the fit has not seen: {strange}; remove those rows."
        ) from None
    except Exception as problem:  # a user's formula may fail in as many ways as there are
        said = str(problem).splitlines()[0].rstrip(".") if str(problem) else type(problem).__name__
        raise ValueError(f"The formula '{right}' cannot be evaluated: {said}.") from None
    matrix = np.asarray(made, dtype=float)
    lost = np.isnan(matrix).sum(axis=0)
    if lost.any():
        name = made.model_spec.column_names[int(np.argmax(lost > 0))]
        raise ValueError(
            f"The formula's {name!r} is not a number in {int(lost.max())} rows, such as the log of a negative one."
        )
    return matrix, made.model_spec


def _column(part: Any, name: str, levels: Sequence[str] | None) -> Any:
    """A column as formulaic takes it: numbers, or categories with the levels of the fit."""
    if levels is None:
        own = np.asarray(part)
        return own if own.dtype.kind in "fiub" else pd.to_numeric(pd.Series(own))
    held: Any = category_of(part, name)
    labels = [label_of(v) for v in part] if held is None else np.asarray(held)
    strange = sorted({*map(str, labels)} - {*levels})
    if strange:
        shown = ", ".join(map(repr, strange[:4]))
        raise ValueError(
            f"Column {name!r} holds levels that the fit has not seen: {shown}; remove those rows (what a formula makes "
            "of a category cannot be ignored)."
        )
    return pd.Categorical(labels, categories=list(levels))


def _tidy(name: str) -> str:
    """The name of a column: levels as they are called everywhere else."""
    return name.replace("[T.", "[")


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _stored(value: Any, expression: str) -> Any:
    """The state of a transform as JSON has it, which knows neither arrays nor keys that are numbers."""
    value = _scalar(value)
    if isinstance(value, dict):
        return {"pairs": [[_stored(key, expression), _stored(own, expression)] for key, own in value.items()]}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, list | tuple):
        return [_stored(own, expression) for own in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(
        f"What {expression!r} has learnt from the rows cannot be stored with a fit ({type(value).__name__}): compute "
        "its columns in the frame."
    )


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        pairs = value.get("pairs")
        return np.array(value["array"]) if pairs is None else {_restored(k): _restored(v) for k, v in pairs}
    return [_restored(own) for own in value] if isinstance(value, list) else value
