import numpy as np
import pytest
from sklearn import datasets as scikit_learn
from sklearn.utils import Bunch

from safespn import datasets


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bupa.csv").write_text('"x1",x2,class\n1,2.5,7\n3,4,9\n')
    (tmp_path / "wdbc.csv").write_text("id,x,class,z\n842302,1,M,2\n842517,3,B,4\n")
    return tmp_path


def test_a_file_in_the_folder_comes_first(folder):
    table = datasets.load("bupa", folder)
    np.testing.assert_array_equal(table.data, [[1, 2.5], [3, 4]])
    np.testing.assert_array_equal(table.target, [7, 9])
    assert table.feature_names == ["x1", "x2"]
    assert table.source.endswith("bupa.csv")


def test_the_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("SAFESPN_DATA", str(folder))
    assert datasets.load("bupa").data.shape == (2, 2)


def test_the_patient_number_of_wdbc_is_dropped_unless_asked_for(folder):
    table = datasets.load("wdbc", folder)
    assert table.feature_names == ["x", "z"]
    np.testing.assert_array_equal(table.target, ["M", "B"])
    assert datasets.load("wdbc", folder, keep_identifier=True).feature_names == ["id", "x", "z"]


@pytest.mark.parametrize(
    ("name", "loader"), [("iris", "load_iris"), ("wine", "load_wine"), ("wdbc", "load_breast_cancer")]
)
def test_scikit_learns_copies_serve_where_there_is_no_file(name, loader, tmp_path):
    table = datasets.load(name, tmp_path)
    np.testing.assert_array_equal(table.data, getattr(scikit_learn, loader)().data)


def test_openml_is_the_last_resort(monkeypatch, tmp_path):
    asked = []

    def fetch(**arguments):
        asked.append(arguments)
        return Bunch(data=np.ones((345, 6)), target=np.array(["1", "2"] * 172 + ["1"]), feature_names=list("abcdef"))

    monkeypatch.setattr(scikit_learn, "fetch_openml", fetch)
    assert datasets.load("bupa", tmp_path).source == "OpenML 8"
    assert asked[0]["data_id"] == 8
    assert asked[0]["target_column"] == "selector"


def test_a_copy_of_another_size_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(
        scikit_learn, "fetch_openml", lambda **_: Bunch(data=np.ones((3, 6)), target=[0, 1, 0], feature_names=[])
    )
    with pytest.raises(datasets.DatasetNotFoundError, match=r"bupa.*\(3, 6\).*expected \(345, 6\).*SAFESPN_DATA"):
        datasets.load("bupa", tmp_path)


def test_a_failed_download_says_how_to_get_the_file(monkeypatch, tmp_path):
    def fetch(**_):
        raise OSError("no route")

    monkeypatch.setattr(scikit_learn, "fetch_openml", fetch)
    with pytest.raises(datasets.DatasetNotFoundError, match=r"haberman.*not in .*no route.*put haberman\.csv"):
        datasets.load("haberman", tmp_path)
    with pytest.raises(datasets.DatasetNotFoundError, match="jain"):
        datasets.load("jain", tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n", "column named class"),
        ("", "column named class"),
        ("x,class\n1\n", "line 2: expected 2 cells, found 1"),
        ("x,class\nred,1\n", "not a number.*red"),
    ],
)
def test_damaged_files_are_refused(tmp_path, text, message):
    (tmp_path / "iris.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        datasets.load("iris", tmp_path)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown data set 'mnist'.*bupa.*wine"):
        datasets.load("mnist")
