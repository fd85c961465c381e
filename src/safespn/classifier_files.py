"""Fitted classifiers as files: two networks, soft labels and plain values; loading runs no code."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from safespn.network.files import ModelFileError, network_tensors, read_model, write_model
from safespn.safety.report import SafetyReport
from safespn.spn import SPN
from safespn.table_encoder import TableEncoder, is_lazy
from safespn.typing import AnyArray

if TYPE_CHECKING:
    from safespn.classifier import SafeSPNClassifier

KIND = "classifier"


def save_classifier(classifier: SafeSPNClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file."""
    # Soft labels of rows in Dask stay where the rows are.
    lazy = is_lazy(classifier.soft_labels_)
    tensors = {"soft_labels": np.empty((0, len(classifier.classes_))) if lazy else classifier.soft_labels_}
    for name, spn in (("safe", classifier.spn_), ("supervised", classifier.supervised_.spn_)):
        tensors |= {f"{name}.{part}": values for part, values in network_tensors(spn.root).items()}
    parameters = {name: _plain(value) for name, value in classifier.get_params().items()}
    parameters = {name: value for name, value in parameters.items() if _is_plain(value)}
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
        "categories": [_plain(categories) for categories in classifier._encoder.categories],
        "feature_names": None if names is None else [str(name) for name in names],
        "n_features": int(classifier.n_features_in_),
        "report": classifier.safety_.to_dict(),
        "history": _plain(classifier.history_),
        "notes": _plain(classifier.notes_),
        "n_sampled": classifier.n_sampled_,
    }
    write_model(path, KIND, tensors, header)


def load_classifier(classifier_type: type[SafeSPNClassifier], path: str | os.PathLike[str]) -> SafeSPNClassifier:
    """Read a classifier written by :func:`save_classifier`."""
    tensors, header = read_model(path, KIND)
    try:
        classifier = classifier_type(**header["parameters"])
        classifier._validate_params()
        classifier.classes_ = np.array(header["classes"], dtype=np.dtype(header["classes_dtype"]))
        classifier._encoder = TableEncoder(tuple(header["categories"]))
        classifier.n_features_in_ = int(header["n_features"])
        if header["feature_names"] is not None:
            classifier.feature_names_in_ = np.array(header["feature_names"], dtype=object)
        _check_columns(classifier.n_features_in_, header["categories"], header["feature_names"])
        classifier.safety_ = SafetyReport(
            **{field.name: header["report"][field.name] for field in fields(SafetyReport)}
        )
        classifier.history_ = list(header["history"])
        classifier.notes_ = dict(header.get("notes", {}))
        classifier.soft_labels_ = tensors["soft_labels"]
        classifier.n_sampled_ = int(header.get("n_sampled", 0))
        if classifier.classes_.ndim != 1 or classifier.soft_labels_.ndim != 2:
            raise ValueError("its classes or soft labels have another shape")
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: the file does not describe a classifier ({error})") from error
    classifier.n_iter_ = max(len(classifier.history_), 1)
    classifier.spn_ = SPN._from_tensors(_part(tensors, "safe"), path)
    supervised = SPN._from_tensors(_part(tensors, "supervised"), path)
    for spn in (classifier.spn_, supervised):
        n_classes = len(classifier.classes_)
        if (spn.n_columns, spn._structure.n_root_edges) != (classifier.n_features_in_, n_classes):
            raise ModelFileError(f"{path}: the networks do not fit {n_classes} classes and the number of features")
    classifier.supervised_ = classifier._twin(supervised)
    return classifier


def _check_columns(n_features: int, categories: Any, names: Any) -> None:
    """Check what a file says about columns: nothing else in it is used without a check of its own."""
    if len(categories) != n_features or not all(entry is None or isinstance(entry, list) for entry in categories):
        raise ValueError("its categories do not fit its columns")
    if not all(isinstance(category, (bool, int, float, str)) for entry in categories for category in entry or ()):
        raise ValueError("its categories are neither strings nor numbers")
    if names is not None and (len(names) != n_features or not all(isinstance(name, str) for name in names)):
        raise ValueError("its column names do not fit its columns")


def _part(tensors: dict[str, AnyArray], name: str) -> dict[str, AnyArray]:
    return {key.removeprefix(f"{name}."): values for key, values in tensors.items() if key.startswith(f"{name}.")}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _plain(value: Any) -> Any:
    """Turn numpy scalars within lists and dictionaries into Python's own."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
