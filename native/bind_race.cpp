#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "borrow.hpp"
#include "race.hpp"

namespace rarestream {

namespace portable {
RaceKernels race_kernels();
}
#ifdef RARESTREAM_HAS_AVX2
namespace avx2 {
RaceKernels race_kernels();
}
namespace avx512 {
RaceKernels race_kernels();
}
#endif

namespace {

// Registers of 64 bytes are half as many steps. What the kernel uses of them came with these three, in one generation.
bool avx512_available() {
#ifdef RARESTREAM_HAS_AVX2
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

RaceKernels kernels_of(const std::string& wanted) {
#ifdef RARESTREAM_HAS_AVX2
    if ((wanted.empty() && use_avx2 && avx512_available()) || (wanted == "avx512" && avx512_available()))
        return avx512::race_kernels();
    if ((wanted.empty() && use_avx2) || (wanted == "avx2" && avx2_available())) return avx2::race_kernels();
#endif
    if (!wanted.empty() && wanted != "portable")
        throw std::invalid_argument("this machine has no instruction set called '" + wanted + "'");
    return portable::race_kernels();
}

// Of a lane: loss, proximal, gamma, lambda, l2, beta, r, intercept.
using Setting = std::tuple<int, bool, double, double, double, double, double, bool>;

class RaceKernel {
    RaceSettings set_{};

public:
    explicit RaceKernel(const std::vector<Setting>& settings) {
        if (settings.empty() || settings.size() > RACE_MOST)
            throw std::invalid_argument("a race has 1 to " + std::to_string(RACE_MOST) + " lanes");
        set_.lanes = static_cast<int>((settings.size() + RACE_WIDTH - 1) / RACE_WIDTH * RACE_WIDTH);
        for (int l = 0; l < set_.lanes; ++l) {
            const auto& [loss, proximal, gamma, lam, l2, beta, r, intercept] =
                settings[static_cast<std::size_t>(l) < settings.size() ? static_cast<std::size_t>(l) : 0];
            if (loss < 0 || loss > 2) throw std::invalid_argument("loss: 0, 1 or 2");
            set_.minus_gamma[l] = static_cast<float>(-gamma);
            set_.lam[l] = static_cast<float>(lam);
            set_.beta[l] = static_cast<float>(beta + gamma * l2);
            set_.pull[l] = proximal;
            set_.hinge[l] = loss == 1;
            set_.logistic[l] = loss == 2;
            set_.rate[l] = loss == 2 && intercept ? gamma : 0;
            set_.start[l] = beta;
            set_.power[l] = r;
            set_.shape[l] = r == 0 ? 0 : r == 1 ? 1 : r == 2 ? 2 : r == 0.5 ? 3 : -1;
            set_.any_l1 |= lam > 0;
            set_.any_proximal |= proximal;
            set_.group_has_logistic[l / RACE_WIDTH] |= loss == 2;
            set_.any_odd |= set_.shape[l] < 0;
        }
    }

    int lanes() const { return set_.lanes; }

    std::int64_t learn(nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> table, InOut<double> counts,
                       nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> means, MaybeLargest largest,
                       In<std::int64_t> indptr, In<std::int32_t> indices, In<float> values, std::int64_t width, bool own,
                       In<std::int8_t> labels, std::optional<In<double>> importances, int scale,
                       nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> scores,
                       const std::string& isa) const {
        LentRows lent_rows(indptr, indices, values, width, own, table.shape(0));
        Rows& rows = lent_rows.rows;
        const std::size_t n = static_cast<std::size_t>(rows.size), lanes = static_cast<std::size_t>(set_.lanes);
        if (labels.size() != n || (importances && importances->size() != n) || scores.shape(0) != n ||
            scores.shape(1) != lanes || table.shape(1) != 2 * lanes || counts.size() != 2 ||
            means.shape(0) != 4 || means.shape(1) != lanes)
            throw std::invalid_argument("race: arrays do not belong together");
        rows.labels = labels.data();
        rows.importances = importances ? importances->data() : nullptr;
        const Scale how = scale_of(scale, largest, table.shape(0));
        const RaceState state{table.data(), static_cast<std::int64_t>(table.shape(0)), largest ? largest->data() : nullptr,
                              counts.data(), means.data()};
        const RaceLearn kernel = kernels_of(isa).learn;
        nb::gil_scoped_release released;
        lent_rows.secure();
        RowMemory<float> memory;
        const Scratch<float> scratch = memory.scratch(rows);
        std::vector<float> leans(set_.any_proximal ? memory.longest * lanes : 0);
        return kernel(set_, state, rows, how, scores.data(), scratch, leans.data());
    }

    std::int64_t score(nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> table, MaybeLargest largest, int lane,
               In<std::int64_t> indptr, In<std::int32_t> indices, In<float> values, std::int64_t width, bool own, int scale,
               InOut<double> scores) const {
        LentRows lent_rows(indptr, indices, values, width, own, table.shape(0));
        Rows& rows = lent_rows.rows;
        if (scores.size() != static_cast<std::size_t>(rows.size) ||
            table.shape(1) != 2 * static_cast<std::size_t>(set_.lanes) || lane < 0 || lane >= set_.lanes)
            throw std::invalid_argument("race: arrays do not belong together");
        const Scale how = scale_of(scale, largest, table.shape(0));
        const RaceState state{table.data(), static_cast<std::int64_t>(table.shape(0)), largest ? largest->data() : nullptr,
                              nullptr, nullptr};
        const RaceScore kernel = kernels_of("").score;
        nb::gil_scoped_release released;
        lent_rows.secure();
        RowMemory<float> memory;
        kernel(set_, state, lane, rows, how, scores.data(), memory.scratch(rows));
        return first_without_score(scores.data(), rows.size, static_cast<std::int64_t>(scores.size()));
    }
};

}  // namespace

void bind_race(nb::module_& m) {
    nb::class_<RaceKernel>(m, "RaceKernel")
        .def(nb::init<const std::vector<Setting>&>(), exact())
        .def_prop_ro("lanes", &RaceKernel::lanes)
        .def("learn", &RaceKernel::learn, exact(), exact(), exact(), exact().none(), exact(), exact(), exact(),
             exact(), exact(), exact(), exact().none(), exact(), exact(), exact() = "")
        .def("score", &RaceKernel::score, exact(), exact().none(), exact(), exact(), exact(), exact(),
             exact(), exact(), exact(), exact());
}

}  // namespace rarestream
