// What the published C code of the FTRL-AUC paper computed, slips included, in double precision; docs/published.md
// lists the slips by the numbers used here (B1 to B9). To reproduce published numbers, and for nothing else.
#pragma once

#include "dual.hpp"
#include "ftrl.hpp"
#include "saddle.hpp"
#include "spam.hpp"

#include <memory>
#include <stdexcept>
#include <string>

namespace rarestream::published {

template <class M>
std::unique_ptr<Method> make(Shape shape, const Vector& settings) {
    if (settings.size() != M::settings) throw std::invalid_argument("published: not that many settings");
    return std::make_unique<M>(shape, settings.data());
}

// The settings come in the order of METHODS in src/rarestream/reproduce/published.py.
inline std::unique_ptr<Method> find(const std::string& name, Shape shape, const Vector& settings) {
    if (name == "ftrl_auc") return make<FtrlAuc<true>>(shape, settings);
    if (name == "ftrl_auc_non_lazy") return make<FtrlAuc<false>>(shape, settings);
    if (name == "ftrl_proximal") return make<FtrlProximal>(shape, settings);
    if (name == "spam_l1" || name == "spam_l2" || name == "spam_l1l2") return make<Spam>(shape, settings);
    if (name == "spauc") return make<Spauc>(shape, settings);
    if (name == "solam") return make<Solam>(shape, settings);
    if (name == "fsauc" && Fsauc::stages(shape.n) > 0) return make<Fsauc>(shape, settings);
    if (name == "rda_l1") return make<DualAveraged<RdaRule>>(shape, settings);
    if (name == "adagrad") return make<DualAveraged<AdaGradRule>>(shape, settings);
    throw std::invalid_argument(name + ": no such published method, or too few rows for it");
}

}  // namespace rarestream::published
