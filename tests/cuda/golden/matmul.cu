typedef signed char int8;
typedef short int16;
typedef long long int64;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;

// Global to shared memory without a register between, where the hardware can.
template <int bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  const uint32 address = uint32(__cvta_generic_to_shared(to));
  if (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  } else if (bytes == 8) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(address), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
  }
#else
  if (bytes == 16) {
    *(uint4*)to = *(const uint4*)from;
  } else if (bytes == 8) {
    *(uint2*)to = *(const uint2*)from;
  } else {
    *(uint32*)to = *(const uint32*)from;
  }
#endif
}
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int pending>
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// grid (3, 2, 1), block (256, 1, 1), 16384 bytes of shared memory
extern "C" __global__ void __launch_bounds__(256) matmul(
    const float* __restrict__ A,
    const float* __restrict__ B,
    float* __restrict__ C
) {
  const int block_x = int(blockIdx.x);
  const int thread_x = int(threadIdx.x);
  const int block_y = int(blockIdx.y);
  __shared__ __align__(16) float A_s[2048];
  __shared__ __align__(16) float B_s[2048];
  __align__(16) float C_r[16];
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      C_r[i * 4 + j] = 0.0f;
    }
  }
  copy_async<16>(&A_s[0 % 2 * 1024 + thread_x / 4 * 16 + thread_x % 4 * 4], &A[(block_y * 64 + thread_x / 4) * 256 + 0 * 16 + thread_x % 4 * 4]);
  copy_async<16>(&B_s[0 % 2 * 1024 + thread_x / 16 * 64 + thread_x % 16 * 4], &B[(0 * 16 + thread_x / 16) * 192 + block_x * 64 + thread_x % 16 * 4]);
  commit_copies();
  for (int k_tile = 0; k_tile < 16; ++k_tile) {
    if (k_tile + 1 < 16) {
      copy_async<16>(&A_s[(k_tile + 1) % 2 * 1024 + thread_x / 4 * 16 + thread_x % 4 * 4], &A[(block_y * 64 + thread_x / 4) * 256 + (k_tile + 1) * 16 + thread_x % 4 * 4]);
      copy_async<16>(&B_s[(k_tile + 1) % 2 * 1024 + thread_x / 16 * 64 + thread_x % 16 * 4], &B[((k_tile + 1) * 16 + thread_x / 16) * 192 + block_x * 64 + thread_x % 16 * 4]);
      commit_copies();
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 16; ++k) {
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
          C_r[i * 4 + j] += A_s[k_tile % 2 * 1024 + (thread_x / 16 * 4 + i) * 16 + k] * B_s[k_tile % 2 * 1024 + k * 64 + thread_x % 16 * 4 + j];
        }
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    *(float4*)&C[(block_y * 64 + thread_x / 16 * 4 + i) * 192 + block_x * 64 + thread_x % 16 * 4] = *(const float4*)&C_r[i * 4];
  }
}
