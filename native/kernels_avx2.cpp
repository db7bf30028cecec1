// The kernels compiled with AVX2.
