// The Python module. The bindings of each part of the core are in a file of their own.
#include <nanobind/nanobind.h>

namespace rarestream {
void bind_blocks(nanobind::module_&);
void bind_learners(nanobind::module_&);
void bind_readers(nanobind::module_&);
void bind_tables(nanobind::module_&);
void bind_arrow(nanobind::module_&);
void bind_vw(nanobind::module_&);
void bind_writers(nanobind::module_&);
void bind_auc(nanobind::module_&);
void bind_features(nanobind::module_&);
void bind_published(nanobind::module_&);
void bind_lanes(nanobind::module_&);
void bind_merge(nanobind::module_&);
void bind_one_row(nanobind::module_&);
}  // namespace rarestream

NB_MODULE(_native, m) {
    m.doc() = "The compiled core of rarestream; its sources are in native/.";
    rarestream::bind_blocks(m);
    rarestream::bind_learners(m);
    rarestream::bind_readers(m);
    rarestream::bind_tables(m);
    rarestream::bind_arrow(m);
    rarestream::bind_vw(m);
    rarestream::bind_writers(m);
    rarestream::bind_auc(m);
    rarestream::bind_features(m);
    rarestream::bind_published(m);
    rarestream::bind_lanes(m);
    rarestream::bind_merge(m);
    rarestream::bind_one_row(m);
}
