"""Other packages' shapes for the learners: one generic body a package, one class a learner."""
