"""Foursquare and Twitter (Zhang et al., 2017) in the text layout of DP-CroSUE's release (Ren et al., 2022).

Written from a description of the layout and from what the authors' code reads, without a copy of the files. Text is
UTF-8 without headers, fields are separated by tabs, and lines end in a line feed; a bare carriage return belongs to
its field. Files, below the folder of the data set:

foursquare/users/user            21 fields (one row may end after 11): 0 user, 1 profile URL, 2 name, 3 the word null,
                                 4 home city, 5-6 counts, 7 Twitter URL, 8 Facebook URL, 9-20 counts, of which 12-14 are
                                 the user's attributes. All but 0 and 3 may be empty. Counts may have thousands commas.
foursquare/users/user_following  follower, followee: users of `user`
foursquare/tips/user_tip         user, tip id
foursquare/tips/tipcleaned       tip id, two tabs, text (UTF-8 or Latin-1, never both; the text may be empty)
foursquare/labels.tsv            as below
twitter/user                     9 fields: user, numeric id, name, biography, location, URL, tweets, following,
                                 followers, the last three with thousands commas; 2-5 may be empty
twitter/following                follower, followee: users (names) of `user`
twitter/userTweet                user (name), tweet id
twitter/tweetcleaned             tweet id, two tabs, text, as tipcleaned
twitter/labels.tsv               as below

labels.tsv has a header, user, gender, occupation_0 to occupation_17, interest_0 to interest_8, and a row for each user
of whom something is known: 0 or 1, or all fields of a kind (gender, occupation, interest) empty where that is not
known. The authors keep these as Python pickles, which run code when they are opened: write them into this table.
Other files of the release (users/userbio, whose records end in a bare carriage return, and tips/tip_loc) are not read:
nothing that names or places a person leaves this module.

The two are the same person where a Foursquare user's Twitter URL ends in the name of a Twitter user, case ignored.
"""

from __future__ import annotations

FILES = (
    "foursquare/users/user",
    "foursquare/users/user_following",
    "foursquare/tips/user_tip",
    "foursquare/tips/tipcleaned",
    "foursquare/labels.tsv",
    "twitter/user",
    "twitter/following",
    "twitter/userTweet",
    "twitter/tweetcleaned",
    "twitter/labels.tsv",
)
OCCUPATIONS = 18
INTERESTS = 9
