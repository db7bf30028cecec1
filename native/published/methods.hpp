// What the C code published with the FTRL-AUC paper computed, bugs included, in double precision. docs/published.md lists
// the bugs by the numbers used here (B1 to B9). Only for reproducing published numbers.
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
std::unique_ptr<Method> make_method(Shape shape, const Vector& settings) {
    if (settings.size() != M::settings) throw std::invalid_argument("published: wrong number of settings");
    return std::make_unique<M>(shape, settings.data());
}

// The settings come in the order of METHODS in src/rarestream/reproduce/published.py.
inline std::unique_ptr<Method> make_method(const std::string& name, Shape shape, const Vector& settings) {
    if (name == "ftrl_auc") return make_method<FtrlAuc<true>>(shape, settings);
    if (name == "ftrl_auc_non_lazy") return make_method<FtrlAuc<false>>(shape, settings);
    if (name == "ftrl_proximal") return make_method<FtrlProximal>(shape, settings);
    if (name == "spam_l1" || name == "spam_l2" || name == "spam_l1l2") return make_method<Spam>(shape, settings);
    if (name == "spauc") return make_method<Spauc>(shape, settings);
    if (name == "solam") return make_method<Solam>(shape, settings);
    if (name == "fsauc" && Fsauc::stages(shape.n) > 0) return make_method<Fsauc>(shape, settings);
    if (name == "rda_l1") return make_method<DualAveraged<RdaRule>>(shape, settings);
    if (name == "adagrad") return make_method<DualAveraged<AdaGradRule>>(shape, settings);
    throw std::invalid_argument(name + ": no such published method, or too few rows for it");
}

}  // namespace rarestream::published
