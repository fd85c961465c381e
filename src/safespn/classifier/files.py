"""Fitted classifiers as files: two committees, soft labels and plain values; loading runs no code."""

from __future__ import annotations

import os
from dataclasses import fields
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from safespn.classifier.committee_files import committee_tensors, committees_of
from safespn.classifier.decision_rules import checked_gains
from safespn.decisions import gains_of
from safespn.exceptions import ModelFileError
from safespn.foundation.column_types import TYPES
from safespn.foundation.lazy_frames import is_lazy
from safespn.foundation.table_encoder import TableEncoder
from safespn.network.files import read_model, write_model
from safespn.safety.report import SafetyReport
from safespn.typing import AnyArray

if TYPE_CHECKING:
    from safespn.classifier import SafeSPNClassifier

KIND = "classifier"
LONGEST_UNUSED = 1_000
"""Characters that the type of the classes may have room for if no label needs as many."""
ROUNDING_OF_SHARES = 1e-6
"""How far shares of classes may be from adding up to one."""
NOT_OF_A_MODEL = ("checkpoint", "scratch")
"""Settings that belong to one fit on one machine: a file that names a folder must not make a later fit write there."""


def save_classifier(classifier: SafeSPNClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file."""
    # Soft labels of rows in Dask stay where the rows are.
    lazy = is_lazy(classifier.soft_labels_)
    tensors = {"soft_labels": np.empty((0, len(classifier.classes_))) if lazy else classifier.soft_labels_}
    networks, committee = committee_tensors(classifier._committee, classifier.supervised_._committee)
    tensors |= networks
    parameters = {name: _plain(value) for name, value in classifier.get_params().items()}
    parameters = {name: value for name, value in parameters.items() if _is_plain(value) and name not in NOT_OF_A_MODEL}
    for column, categories in enumerate(classifier._encoder.categories):
        if not all(_is_plain(_plain(category)) for category in categories or ()):
            raise ValueError(
                f"column {column} has categories that are neither strings nor numbers; they cannot be saved"
            )
    names = getattr(classifier, "feature_names_in_", None)
    header = {
        "parameters": parameters,
        "classes": classifier.classes_.tolist(),
        "classes_dtype": classifier.classes_.dtype.str,
        "column_types": classifier.column_types_,
        "categories": [_plain(categories) for categories in classifier._encoder.categories],
        "feature_names": None if names is None else [str(name) for name in names],
        "n_features": int(classifier.n_features_in_),
        "report": classifier.safety_.to_dict(),
        "history": _plain(classifier.history_),
        "notes": _plain(classifier.notes_),
        "n_sampled": classifier.n_sampled_,
        "committee": _plain(committee),
        "decision_gains": classifier._gains.tolist(),
        "class_weight": _class_weight_pairs(classifier.class_weight),
    }
    write_model(path, KIND, tensors, header)


def load_classifier(classifier_type: type[SafeSPNClassifier], path: str | os.PathLike[str]) -> SafeSPNClassifier:
    """Read a classifier written by :func:`save_classifier`."""
    tensors, header = read_model(path, KIND)
    try:
        settings = {name: value for name, value in header["parameters"].items() if name not in NOT_OF_A_MODEL}
        classifier = classifier_type(**settings)
        pairs = header.get("class_weight")
        if pairs is not None:
            classifier.class_weight = {label: float(weight) for label, weight in pairs}
        classifier._validate_params()
        classifier.classes_ = _checked_classes(header["classes"], header["classes_dtype"])
        n_classes = len(classifier.classes_)
        classifier._gains = checked_gains(header.get("decision_gains"), n_classes)
        if not isinstance(classifier.decision, str):
            gains_of(classifier.decision, np.eye(n_classes))
        _check_types(header["column_types"], header["categories"])
        classifier._encoder = TableEncoder(tuple(header["column_types"]), tuple(header["categories"]))
        classifier.n_features_in_ = _checked_count(header["n_features"], "features")
        if header["feature_names"] is not None:
            classifier.feature_names_in_ = np.array(header["feature_names"], dtype=object)
        _check_columns(classifier.n_features_in_, header["categories"], header["feature_names"])
        classifier.safety_ = _checked_report(header["report"])
        classifier.history_ = [dict(entry) for entry in header["history"]]
        classifier.notes_ = _checked_notes(header.get("notes", {}))
        classifier.soft_labels_ = _checked_soft_labels(tensors["soft_labels"], n_classes)
        classifier.n_sampled_ = _checked_count(header.get("n_sampled", 0), "sampled rows")
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: the file does not describe a classifier ({error})") from error
    classifier.n_iter_ = max(len(classifier.history_), 1)
    shape = (classifier.n_features_in_, len(classifier.classes_))
    try:
        safe, supervised = committees_of(tensors, header["committee"], shape, header["categories"], path)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path}: the file does not describe a committee ({error})") from error
    classifier._set_committee(safe)
    classifier.supervised_ = classifier._with_committee(supervised)
    return classifier


def _checked_classes(classes: Any, dtype: Any) -> AnyArray:
    """Labels of the classes; a crafted type must not ask for more memory than they need."""
    if not isinstance(classes, list) or not all(isinstance(label, (bool, int, float, str)) for label in classes):
        raise ValueError("its classes are neither strings nor numbers")
    longest = max((len(label) for label in classes if isinstance(label, str)), default=0)
    kind = np.dtype(dtype)
    if kind.kind not in "biufUO" or kind.itemsize > 4 * max(longest, LONGEST_UNUSED):
        raise ValueError(f"its classes have the type {dtype}")
    if len(set(classes)) != len(classes):
        raise ValueError("a class occurs twice")
    return np.array(classes, dtype=kind)


def _checked_count(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"its number of {what} is {value!r}")
    return value


def _checked_soft_labels(soft_labels: AnyArray, n_classes: int) -> AnyArray:
    """Soft labels whose rows are distributions over the classes."""
    if soft_labels.shape[1:] != (n_classes,) or soft_labels.dtype.kind != "f":
        raise ValueError("its soft labels do not fit its classes")
    # A comparison with NaN is false.
    if not soft_labels.min(initial=0.0) >= 0:
        raise ValueError("its soft labels have entries that are negative or no numbers")
    if not np.abs(soft_labels.sum(axis=1) - 1).max(initial=0.0) <= ROUNDING_OF_SHARES:
        raise ValueError("its soft labels have rows that do not add up to one")
    return soft_labels


def _checked_notes(values: Any) -> dict[str, Any]:
    """Notes on the table of the fit; what reads the others checks them."""
    notes = dict(values)
    if not isinstance(notes.get("target"), (str, NoneType)):
        raise ValueError(f"its notes name the target {notes['target']!r}, which is no text")
    return notes


def _checked_report(values: Any) -> SafetyReport:
    """The safety report, each value of the type that it should have, and none that belies another."""
    types = {"str": str, "int": int, "float": (int, float), "bool": bool, "list[str]": list}
    for field in fields(SafetyReport):
        value, kind = values[field.name], str(field.type)
        if not isinstance(value, types[kind]) or (isinstance(value, bool) and kind != "bool"):  # type: ignore[arg-type]
            raise ValueError(f"its report has {value!r} for {field.name}")
    if not all(isinstance(promise, str) for promise in values["promises"]):
        raise ValueError("its report has promises that are not sentences")
    for name in ("n_labelled", "n_unlabelled"):
        _checked_count(values[name], f"rows in the report ({name})")
    if not 0 <= values["disagreement"] <= 1:
        raise ValueError(f"its report has {values['disagreement']!r} for disagreement, which is a share")
    # Gains that cannot be computed are not certified, and only they are NaN.
    numbers = ("worst_case", "density_gain", "posterior_loss", "contrast", "labelled_gain")
    unknown = [name for name in numbers if not abs(values[name]) < np.inf]
    if values["certified"] and unknown:
        raise ValueError(f"its report is certified, but has {values[unknown[0]]!r} for {unknown[0]}")
    return SafetyReport(**{field.name: values[field.name] for field in fields(SafetyReport)})


def _check_types(types: Any, categories: Any) -> None:
    """Check that the types of columns are known, and that those of codes have categories."""
    if not isinstance(types, list) or not all(isinstance(kind, str) and kind in TYPES for kind in types):
        raise ValueError("its types of columns are not known")
    has_codes = [kind in ("categorical", "ignored") for kind in types]
    if has_codes != [entry is not None for entry in categories]:
        raise ValueError("its types of columns do not fit its categories")


def _check_columns(n_features: int, categories: Any, names: Any) -> None:
    """Check what a file says about columns: nothing else in it is used without a check of its own."""
    if len(categories) != n_features or not all(entry is None or isinstance(entry, list) for entry in categories):
        raise ValueError("its categories do not fit its columns")
    if not all(isinstance(category, (bool, int, float, str)) for entry in categories for category in entry or ()):
        raise ValueError("its categories are neither strings nor numbers")
    if any(len(set(entry or ())) != len(entry or ()) for entry in categories):
        raise ValueError("a category occurs twice")
    if names is None:
        return
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ValueError("its column names do not fit its columns")
    if len(set(names)) != len(names):
        raise ValueError("a column name occurs twice")


def _class_weight_pairs(class_weight: Any) -> list[list[Any]] | None:
    """Weights of classes as pairs: names of fields would make texts of numbers."""
    if not isinstance(class_weight, dict):
        return None
    return [[_plain(label), _plain(weight)] for label, weight in class_weight.items()]


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(entry) for entry in value)
    return value is None or isinstance(value, (bool, int, float, str))


def _plain(value: Any) -> Any:
    """Turn numpy scalars within lists and dictionaries into Python's own."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    return value.item() if isinstance(value, np.generic) else value
