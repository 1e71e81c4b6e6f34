typedef signed char int8;
typedef short int16;
typedef long long int64;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;

// A kernel may start while those before it run: until they have ended it touches nothing that they do.
__device__ __forceinline__ void wait_for_kernels_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// grid (10, 1, 1), block (100, 1, 1), 0 bytes of shared memory
extern "C" __global__ void __launch_bounds__(100) scale(
    const float* __restrict__ X,
    float* __restrict__ T,
    float alpha
) {
  const int block_x = int(blockIdx.x);
  const int thread_x = int(threadIdx.x);
  let_next_kernel_start();
  const int i = block_x * 100 + thread_x;
  if (i < 1000) {
    T[i] = alpha * X[i];
  }
}

// grid (10, 1, 1), block (100, 1, 1), 0 bytes of shared memory
extern "C" __global__ void __launch_bounds__(100) reverse(
    const float* T,
    float* __restrict__ Y
) {
  const int block_x = int(blockIdx.x);
  const int thread_x = int(threadIdx.x);
  const int i = block_x * 100 + thread_x;
  wait_for_kernels_before();
  if (i < 1000) {
    Y[i] = T[999 - i];
  }
}
