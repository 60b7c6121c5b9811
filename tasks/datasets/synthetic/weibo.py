"""A synthetic replica of the two Weibo networks of DP-CroSUE, in the layout that `tasks.datasets.weibo` reads.

Nothing of the original but two files of users was ever published, so sizes are those of the paper (Table 1) and the
rest is invented: of how many users labels are known, what profiles look like, which words are used. Two traps of tables
like these are in: numbers written 12.0, and fields with commas, quotation marks and line ends.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from tasks.datasets.synthetic.generator import Replica
from tasks.datasets.synthetic.networks import HAN, Pair, PairDescription, PairOptions, handles, random_mask
from tasks.datasets.synthetic.skew import Ints, pick
from tasks.datasets.weibo import FILES, GENDERS, LABELS, PEOPLE, POSTS

WEIBO = PairDescription(
    name="DP-CroSUE's two Weibo networks", size=32_000_000, users=(8_117, 8_539), anchors=2_969,
    follows=(12_000, 12_000), posts=(158_823, 153_741), reciprocity=(0.4, 0.4), writers=(1, 1),
    labelled={"occupation": 0.4, "interest": 0.8}, interests=(0.45, 0.3, 0.15, 0.07, 0.03), community_size=40,
    sounds=HAN, occupations=(0.45, 0.12, 0.09, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02, 0.02, 0.01, 0.01, 0.01),
    topics={  # in the order of the paper
        "travel": ("旅行", "机票", "酒店", "海滩", "攻略", "签证"),
        "art": ("展览", "油画", "音乐", "话剧", "电影", "摄影"),
        "health": ("养生", "健身", "睡眠", "医生", "瑜伽", "体检"),
        "food": ("火锅", "咖啡", "烧烤", "甜品", "面条", "餐厅"),
        "technology": ("手机", "代码", "芯片", "软件", "机器人", "数据"),
        "sports": ("足球", "篮球", "比赛", "教练", "冠军", "球迷"),
        "business": ("股票", "创业", "市场", "客户", "品牌", "融资"),
        "politics": ("政策", "外交", "选举", "法律", "议会", "新闻"),
        "game": ("游戏", "副本", "玩家", "通关", "装备", "战队"),
        "fashion": ("穿搭", "口红", "裙子", "秀场", "包包", "潮流"),
    },
    common=("的", "了", "我", "是", "今天", "一个", "不错", "喜欢", "时间", "大家", "真的", "分享"),
    gendered=(("姐妹", "闺蜜", "老公"), ("兄弟", "胡子", "老婆")),
)  # fmt: skip
COUNTLESS, GENDERLESS = 0.03, 0.06
"""Shares of users without counts, and without gender."""
PROVINCES = {
    "北京": ("朝阳区", "海淀区"), "上海": ("徐汇区", "浦东新区"), "广东": ("广州", "深圳"), "四川": ("成都", "绵阳"),
    "浙江": ("杭州", "宁波"), "其他": (None, None),
}  # fmt: skip


def _write(folder: Path, pair: Pair, _: PairOptions) -> None:
    account = 1_000_000_000 + 7 * pair.rng.permutation(len(pair.people))
    for k in (0, 1):
        people, follows, posts, labels = (name.format(k + 1) for name in FILES)
        ids = pl.Series("user", account[pair.members[k]])
        np.save(folder / follows, np.stack([ids.gather(end).to_numpy() for end in pair.links[k]], axis=1))
        number = pair.numbers_of_posts(k)
        replace(PEOPLE, name=people).write(folder, [_profiles(pair, k, ids, number)])
        texts = (
            pl.DataFrame({"": post, "user_id": ids.gather(author), "con": text + _ending(pair, len(post))}).sample(
                fraction=1, shuffle=True, seed=int(post[0])
            )
            for post, author, text in pair.posts(k, number)
        )
        replace(POSTS, name=posts).write(folder, texts)
        replace(LABELS, name=labels).write(folder, [pair.labels(k, ids)])


def _ending(pair: Pair, n: int) -> pl.Series:
    """Marks that a text of this layout may have."""
    return pl.Series(np.where(pair.rng.random(n) < 0.05, ', ”转“ "发"\n', ""))


def _profiles(pair: Pair, k: int, ids: pl.Series, number: Ints) -> pl.DataFrame:
    """The table of users, as text."""
    rng, members, n = pair.rng, pair.members[k], len(ids)
    follows, followed = pair.degrees(k)

    def count(base: Ints, factor: float) -> pl.Series:
        # A column with gaps that went through pandas has 12.0 for 12.
        text = pair.count(factor * (base + 1), n, 1 - COUNTLESS).cast(pl.String)
        return text + pl.Series(np.where(rng.random(n) < 0.05, ".0", ""))

    def draw(shares: dict[str | None, float]) -> pl.Series:
        return pl.Series([*shares], dtype=pl.String).gather(pick(rng, [*shares.values()], n))

    province = pair.people.community[members] % len(PROVINCES)
    cities = pl.Series([city for both in PROVINCES.values() for city in both])
    interest = pl.Series([words[0] for words in WEIBO.topics.values()]).gather(pair.favourite(k))
    brief = "爱" + interest + draw({",合成用户": 0.4, '"合成"用户': 0.3, "\n合成用户": 0.3})
    return pl.DataFrame(
        {
            "_id": ids,
            "NickName": handles(rng, members, HAN),
            "Gender": pl.Series(GENDERS).gather(pair.gender[members]).set(random_mask(rng, n, GENDERLESS), None),
            "Province": pl.Series([*PROVINCES]).gather(province),
            "City": cities.gather(2 * province + rng.integers(0, 2, n)),
            "BriefIntroduction": brief.set(random_mask(rng, n, 0.3), None),
            "VIPlevel": draw({"未开通": 0.7, "1级": 0.1, "3级": 0.1, "6级": 0.1}),
            "Authentication": draw({"无": 0.9, "个人认证": 0.1}),
            "Num_Tweets": count(number, 3.0),
            "Num_Follows": count(follows, 60.0),
            "Num_Fans": count(followed, 90.0),
            "Sentiment": draw({"单身": 0.2, "恋爱中": 0.1, "已婚": 0.1, None: 0.6}),
            "": np.arange(n),
            "Unnamed: 0": rng.permutation(n),
            "SexOrientation": None,
            "Birthday": pl.Series(rng.integers(365 * 5, 365 * 35, n)).cast(pl.Int32).cast(pl.Date),
            "URL": "https://weibo.example/u/" + ids.cast(pl.String),
        }
    )


REPLICA = Replica(
    "twin-weibo",
    "two networks of 8,117 and 8,539 synthetic users, 2,969 of them the same, with 12,000 friendships each and "
    "158,823 and 153,741 posts in Chinese; gender, occupation, interests",
    "obtain: {scale: 1.0, seed: 2023}, format: weibo, read: {}",
    {"": WEIBO},
    PairOptions,
    Pair,
    _write,
)
