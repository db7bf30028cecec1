// The list of learners: a new one adds its header and its name here.
#pragma once

#include "adagrad.hpp"
#include "dual_averaging.hpp"
#include "fsauc.hpp"
#include "ftrl_auc.hpp"
#include "ftrl_proximal.hpp"
#include "rda.hpp"
#include "solam.hpp"

#define RARESTREAM_LEARNERS(X) \
    X(AdaGrad)                 \
    X(DualAveraging)           \
    X(Fsauc)                   \
    X(FtrlAuc)                 \
    X(FtrlAucExact)            \
    X(FtrlProximal)            \
    X(Rda)                     \
    X(Solam)
