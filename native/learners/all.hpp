// The list of learners: a new one adds its header and its name here.
#pragma once

#include "adagrad.hpp"
#include "adaoam.hpp"
#include "dual_averaging.hpp"
#include "fsauc.hpp"
#include "ftrl_auc.hpp"
#include "ftrl_proximal.hpp"
#include "oam.hpp"
#include "opauc.hpp"
#include "rda.hpp"
#include "solam.hpp"
#include "spam.hpp"
#include "spauc.hpp"

#define RARESTREAM_LEARNERS(X)       \
    X(AdaGrad)                       \
    X(AdaOam)                        \
    X(DualAveraging)                 \
    X(DualAveragingBudget)           \
    X(DualAveragingEvidence)         \
    X(DualAveragingEvidenceHalfLife) \
    X(DualAveragingHalfLife)         \
    X(DualAveragingPower)            \
    X(DualAveragingPowerBudget)      \
    X(DualAveragingPowerHalfLife)    \
    X(Fsauc)                         \
    X(FtrlAuc)                       \
    X(FtrlAucExact)                  \
    X(FtrlAucHalfLife)               \
    X(FtrlProximal)                  \
    X(FtrlProximalHalfLife)          \
    X(Oam)                           \
    X(Opauc)                         \
    X(OpaucExact)                    \
    X(Rda)                           \
    X(Solam)                         \
    X(Spam)                          \
    X(SpamFull)                      \
    X(SpamFullL1)                    \
    X(Spauc)                         \
    X(SpaucL1)
