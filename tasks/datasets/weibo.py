"""Weibo in two networks that share users, in the files that the code of DP-CroSUE (Ren et al., 2022) reads.

Nothing but the two files of users was ever published, so the rest is written from that code. For N = 1, 2:

user_infoN.csv      CSV (RFC 4180, UTF-8) with a header of 17 columns: two index columns of any name (one may be empty),
                    then _id, NickName, Gender, Province, City, BriefIntroduction, Birthday, VIPlevel, Authentication,
                    URL, Num_Tweets, Num_Follows, Num_Fans, SexOrientation, Sentiment. _id is a whole number. Gender is
                    男, 女 or empty; the three numbers are whole, may be written 12.0, and may be empty.
newrelN.npy         NumPy array (m, 2) of whole numbers: _id of the follower and of the one who is followed
cleaned_blogN.csv   CSV with a header in which there are user_id (an _id) and con, the text; other columns do not matter
labelsN.tsv         tab-separated, with a header: user (an _id), occupation_0 to occupation_13, interest_0 to
                    interest_9, and a row for each user of whom something is known: 0 or 1, or all fields of a kind
                    (occupation, interest) empty where that is not known

CSV fields may be quoted with " and then hold commas, line ends and doubled quotation marks. The authors keep labels as
Python pickles, which run code when they are opened: write them into this table. The ten interests are, in the order of
the paper, travel, art, health, food, technology, sports, business, politics, game and fashion.

A person has the same _id in both networks.
"""

from __future__ import annotations

NETWORKS = ("weibo1", "weibo2")
FILES = ("user_info{}.csv", "newrel{}.npy", "cleaned_blog{}.csv", "labels{}.tsv")
"""Of each network: {} is 1 or 2."""
COLUMNS = (
    "_id", "NickName", "Gender", "Province", "City", "BriefIntroduction", "Birthday", "VIPlevel", "Authentication",
    "URL", "Num_Tweets", "Num_Follows", "Num_Fans", "SexOrientation", "Sentiment",
)  # fmt: skip
"""Of a file of users, behind two index columns."""
OCCUPATIONS = 14
INTERESTS = 10
