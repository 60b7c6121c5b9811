"""Which column is what, what is refused, and how: one line with file, row and column."""

from pathlib import Path

import polars as pl
import pytest

from tasks.core.errors import ConfigurationError, DataError
from tasks.external import reading
from tasks.external.reading import Names

RATINGS = "userId,movie_id,rating,timestamp\n1,10,4,99\n1,11,3,99\n2,10,5,99\n"


def written(folder: Path, text: str, name: str = "ratings.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_columns_are_recognised_by_usual_names_and_the_line_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, RATINGS)
    given = reading.interactions(path, "train", Names())
    assert given.rows.to_dict(as_series=False) == {
        "user": ["1", "1", "2"],
        "item": ["10", "11", "10"],
        "rating": [4.0, 3.0, 5.0],
    }
    assert given.taken.line == f"train: {path} (3 rows; columns userId = user, movie_id = item, rating)"


def test_the_line_has_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    path = written(tmp_path, "user,it\x1b]0;owned\x07em\n1,2\n", "rat\nings.csv")
    given = reading.interactions(path, "train", Names({"item": "it\x1b]0;owned\x07em"}))
    assert given.taken.line.isprintable()
    assert "rat ings.csv (1 rows; columns user, it\\x1b]0;owned\\x07em = item)" in given.taken.line


def test_options_name_columns_and_separators_are_seen(tmp_path: Path) -> None:
    path = written(tmp_path, "who\twhat\n7\ta b\n")
    given = reading.interactions(path, "train", Names({"user": "who", "item": "what"}))
    assert given.rows.rows() == [("7", "a b")]


@pytest.mark.parametrize("between", [",", "\t", "::"])
@pytest.mark.parametrize(
    "first", [("u1", "book", "4"), ("u1", "i1", "4", "x", "99"), ("1", "2", "3"), ("1", "2", "3", "5", "6")]
)
def test_columns_of_a_table_without_a_header_are_named_by_position(
    tmp_path: Path, between: str, first: tuple[str, ...]
) -> None:
    path = written(tmp_path, between.join(first) + "\n")
    names = Names({"user": "column_2", "item": "column_1", "rating": "column_3"})
    names.require([path])
    given = reading.interactions(path, "train", names)
    assert given.rows.rows() == [(first[1], first[0], float(first[2]))]
    assert given.taken.notes == ["no header"]
    some = reading.interactions(path, "train", Names({"user": "column_2", "item": "column_1"}))
    assert some.rows["user", "item"].rows() == [(first[1], first[0])]
    with pytest.raises(ConfigurationError, match="no file has a column 'column_6'"):
        Names({"user": "column_6"}).require([path])
    with pytest.raises(DataError, match="canaries are added to CSV with a header"):
        reading.text_table(path, names)


@pytest.mark.parametrize("third", ["4.5", "2024-05-31", "2024-05-31T18:30:00Z", "31.05.2024 18:30", "5/31/24"])
def test_names_of_columns_that_look_like_a_first_row_are_refused(tmp_path: Path, third: str) -> None:
    path = written(tmp_path, f"ann,book,{third}\nbob,book,{third}\n")
    with pytest.raises(DataError, match=r":1: looks like data .*; say --user-column column_1, column_2"):
        reading.interactions(path, "train", Names({"user": "ann", "item": "book"}))


def test_a_position_in_another_file_leaves_movielens_columns_as_they_are(tmp_path: Path) -> None:
    path = written(tmp_path, "196\t242\t3\t881250949\n")
    for names in (Names({"user": "column_1"}), Names({"user": "column_1", "item": "column_2"})):
        names.require([path])
        assert reading.interactions(path, "train", names).rows.rows() == [("196", "242", 3.0)]
        assert reading.role_column(path, "time", names) == "timestamp"


def test_a_first_line_that_names_no_columns_is_found_by_its_values(tmp_path: Path) -> None:
    path = written(tmp_path, "ann,book\nbob,tea\nann,tea\n")
    with pytest.raises(DataError, match=r":1: 'ann' is a value of its column; add a first line that names"):
        reading.interactions(path, "train", Names({"user": "ann", "item": "book"}))
    path = written(tmp_path, "user,track\nuser,track\nbob,tea\n")  # whose names they are
    assert reading.interactions(path, "train", Names()).rows.rows() == [("user", "track"), ("bob", "tea")]


def test_positions_in_one_file_leave_another_that_names_its_columns_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path, "item,user\na,u1\n")
    assert reading.interactions(path, "train", Names({"user": "column_1", "item": "column_2"})).rows.rows() == [
        ("u1", "a")
    ]
    with pytest.raises(ConfigurationError, match="no file has a column 'column_1'"):
        Names({"user": "column_1"}).require([path])


def test_parquet_reads_as_csv_does(tmp_path: Path) -> None:
    table = pl.read_csv(written(tmp_path, RATINGS))
    table.write_parquet(tmp_path / "ratings.parquet")
    table.write_parquet(tmp_path / "RATINGS.PARQUET")
    from_csv = reading.interactions(tmp_path / "ratings.csv", "train", Names())
    from_parquet = reading.interactions(tmp_path / "ratings.parquet", "train", Names())
    assert from_csv.rows.equals(from_parquet.rows)
    with pytest.raises(DataError, match=r"RATINGS.PARQUET: would be read as text; rename it to RATINGS\.parquet$"):
        reading.interactions(tmp_path / "RATINGS.PARQUET", "train", Names())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("user,user_id,item\n1,2,3\n", ":1: 'user' and 'user_id' may both be the user; say --user-column NAME"),
        (
            "a,item\n1,2\n",
            ":1: no column is recognised as the user (has 'a', 'item'); say --user-column NAME, or, "
            "if that line is data, column_1, column_2, ..., by position",
        ),
        (
            "1,2,3,4,5\n",
            ":1: no column is recognised as the user (has 'column_1', 'column_2', 'column_3', 'column_4', "
            "'column_5'); say --user-column NAME",
        ),
        ("user,item,rating\n1,2,3\n1,3,good\n", ":3: rating is 'good', not a number"),
        ("user,item,rating\n1,2,3\n1,3,nan\n", ":3: rating is nan, not a finite number of at most 1e+50"),
        ("user,item,rating\n1,2,1e308\n", ":2: rating is 1e+308, not a finite number of at most 1e+50"),
        ("user,item\n\n", ": has a header and nothing else"),
        ('user,"item\n1,2\n', ":1: a quoted name does not end on its line"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "ratings.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError) as error:
        reading.interactions(path, "train", Names())
    assert str(error.value) == f"{path}{complaint}"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing.csv: no such file"):
        reading.interactions(tmp_path / "nothing.csv", "train", Names())


def test_of_a_repeated_pair_the_last_counts_and_a_repeated_listed_item_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "user,item,rating\n1,2,3\n1,2,5\n")
    given = reading.interactions(path, "train", Names())
    assert given.rows.rows() == [("1", "2", 5.0)]
    assert "1 repeated pairs" in given.taken.line
    with pytest.raises(DataError, match=r"ratings.csv:3: user 1, item 2 is repeated \(first on line 2\)"):
        reading.lists(path, "recommendations", Names())


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("user,item,rank\n1,b,2\n1,a,1\n2,c,5\n", ""),
        ("user,item,score\n1,b,0.1\n1,a,0.7\n2,c,0\n", "ordered by score"),
        ("user,item\n1,a\n1,b\n2,c\n", "in the order of their rows"),
    ],
)
def test_lists_are_ordered_by_rank_else_score_else_row(tmp_path: Path, text: str, note: str) -> None:
    given = reading.lists(written(tmp_path, text), "recommendations", Names())
    ordered = given.rows.sort("user", "rank").select("user", "item", "rank").rows()
    assert ordered == [("1", "a", 1), ("1", "b", 2), ("2", "c", 1)]
    assert note in given.taken.line


def test_attributes_are_classes_numbers_are_grouped_and_names_left_out(tmp_path: Path) -> None:
    rows = [f"{u},{'mf'[u % 2]},{18 + u % 50},zip{u},same" for u in range(100)]
    path = written(tmp_path, "\n".join(["user_id,gender,age,zip,country", *rows, "100,,,,"]) + "\n", "users.csv")
    given = reading.attributes(path, Names(), ())
    assert given.rows.columns == ["user", "gender", "age"]
    assert given.rows["gender"].null_count() == given.rows["age"].null_count() == 1
    assert given.rows["age"].drop_nulls().value_counts()["count"].to_list() == pytest.approx([25] * 4, abs=2)
    assert "zip: left out, it has 100 different values" in given.taken.line
    assert "country: left out" in given.taken.line
    assert reading.attributes(path, Names(), ("gender",)).rows.columns == ["user", "gender"]
    with pytest.raises(DataError, match="column 'zip': left out, it has 100 different values"):
        reading.attributes(path, Names(), ("zip",))
    with pytest.raises(DataError, match="no column 'sex'"):
        reading.attributes(path, Names(), ("sex",))


def test_numeric_attributes_of_parquet_are_attributes(tmp_path: Path) -> None:
    pl.DataFrame({"user": [1, 2, 3], "age": [20.5, None, 30.5]}).write_parquet(tmp_path / "users.parquet")
    given = reading.attributes(tmp_path / "users.parquet", Names(), ())
    assert given.rows["age"].to_list() == ["20.5", None, "30.5"]
