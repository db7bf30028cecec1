// The kernels as every machine can run them.
