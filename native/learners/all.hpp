// The list of learners: a new one adds its header and its name here.
#pragma once

#include "dual_averaging.hpp"
#include "ftrl_auc.hpp"
#include "ftrl_proximal.hpp"
#include "oam.hpp"

#define RARESTREAM_LEARNERS(X) X(DualAveraging) X(FtrlAuc) X(FtrlProximal) X(Oam)
