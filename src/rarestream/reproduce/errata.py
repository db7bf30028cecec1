"""The errata of the published program: each bug with its effect and the test that shows it."""

from __future__ import annotations

from typing import NamedTuple

TESTS = "tests/reproduce/test_errata.py"


class Erratum(NamedTuple):
    """Something that the published program does and the paper does not say."""

    name: str
    where: str
    what: str
    effect: str
    test: str


ERRATA = (
    Erratum(
        "B1",
        "FTRL-AUC, FTRL-Pro",
        "the weight is -(z - 1)/D for z > λ and (|z| + λ)/D for z < -λ, in place of -(z - sign(z) λ)/D",
        "no soft-thresholding; with λ < z < 1 a weight has the wrong sign",
        "test_b1_the_weight_of_ftrl_is_not_soft_thresholded",
    ),
    Erratum(
        "B2",
        "SPAM-l1/l2",
        "positive weights are not divided by 1 + η l2",
        "they escape the l2 shrinkage",
        "test_b2_positive_weights_of_spam_escape_the_l2_shrinkage",
    ),
    Erratum(
        "B3",
        "RDA-l1",
        "for a negative mean gradient ḡ, ḡ - 1 in place of ḡ + λ",
        "such weights are far too large",
        "test_b3_negative_mean_gradients_of_rda_are_moved_by_one",
    ),
    Erratum(
        "B4",
        "AdaGrad",
        "for a negative mean gradient the factor η t/(ε + √v) is lost",
        "positive and negative weights differ in scale by orders of magnitude",
        "test_b4_negative_mean_gradients_of_adagrad_lose_their_rate",
    ),
    Erratum(
        "B5",
        "RDA-l1, AdaGrad",
        "the gradient is not cleared between rows",
        "a feature's last gradient counts again in each row without it",
        "test_b5_a_gradient_counts_again_in_rows_without_its_feature",
    ),
    Erratum(
        "B6",
        "AUC",
        "the row that ranks last is omitted; ties are broken by the order of the rows",
        "low by 1/n- whenever a negative ranks last; a model of zeros scores anything",
        "test_b6_the_row_that_ranks_last_is_left_out_and_ties_go_by_row",
    ),
    Erratum(
        "B7",
        "FTRL-Pro",
        "the intercept's state is kept and never used",
        "there is no intercept",
        "test_b7_ftrl_proximal_has_no_intercept",
    ),
    Erratum(
        "B8",
        "SOLAM",
        "a and b are clipped at r, but not at -r",
        "rarely matters",
        "test_b8_the_means_of_solam_are_clipped_from_above_only",
    ),
    Erratum(
        "B9",
        "SPAM",
        "the term -2p(1 - p)(b - a)(x̄- - x̄+) of the gradient is missing",
        "it minimises another objective, F + (a - b)²",
        "test_b9_the_gradient_of_spam_lacks_a_term",
    ),
    Erratum(
        "B10",
        "a third FTRL-AUC, half lazy",
        "divides by a counter that is zero",
        "no number; the paper does not use it",
        "test_b10_a_class_that_has_not_come_has_no_mean",
    ),
    Erratum(
        "B11",
        "Figure 1",
        "15 positive labels for 14 positive points",
        "its AUC is of a mislabelled set; figure 1 here has other points",
        "test_b11_a_label_too_many_is_the_auc_of_another_set",
    ),
    Erratum(
        "B12",
        "imbalanced runs",
        "the ratio is a constant of the program, edited by hand",
        "the authors' figures 6 and 11 have the same contents, those of 0.1; figure 11 here has no published points",
        "test_b12_the_points_of_figure_11_are_of_the_other_ratio",
    ),
)

# The bugs of each method in a phrase. SPAUC and FSAUC have none but the measure.
OF_METHODS = {
    "ftrl_auc": "no soft-thresholding (B1)",
    "spam_l1": "a term of the gradient is missing (B9)",
    "spam_l2": "a term of the gradient is missing (B9)",
    "spam_l1l2": "a term is missing (B9), half of the weights escape the l2 penalty (B2)",
    "solam": "class means clipped at one end only (B8)",
    "spauc": "only the measure (B6)",
    "fsauc": "only the measure (B6)",
    "adagrad": "gradients of earlier rows count again (B5), half of the weights lose their learning rate (B4)",
    "rda_l1": "gradients of earlier rows count again (B5), half of the weights are far too large (B3)",
    "ftrl_proximal": "no soft-thresholding (B1), no intercept (B7)",
}
