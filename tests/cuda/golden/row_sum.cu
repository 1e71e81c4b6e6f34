typedef signed char int8;
typedef short int16;
typedef long long int64;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;

// grid (64, 1, 1), block (256, 1, 1), 32 bytes of shared memory
extern "C" __global__ void __launch_bounds__(256) row_sum(
    const float* __restrict__ A,
    float* __restrict__ S
) {
  const int block_x = int(blockIdx.x);
  const int thread_x = int(threadIdx.x);
  const uint32 warp_lanes = 0xffffffffu;
  __shared__ __align__(16) float partial[8];
  float total[1];
  float other[1];
  total[0] = 0.0f;
  for (int k = thread_x; k < 1000; k += 256) {
    total[0] += A[block_x * 1000 + k];
  }
  // within the warp
  other[0] = __shfl_xor_sync(warp_lanes, total[0], 16, 32);
  total[0] += other[0];
  other[0] = __shfl_xor_sync(warp_lanes, total[0], 8, 32);
  total[0] += other[0];
  other[0] = __shfl_xor_sync(warp_lanes, total[0], 4, 32);
  total[0] += other[0];
  other[0] = __shfl_xor_sync(warp_lanes, total[0], 2, 32);
  total[0] += other[0];
  other[0] = __shfl_xor_sync(warp_lanes, total[0], 1, 32);
  total[0] += other[0];
  if (thread_x % 32 == 0) {
    partial[thread_x / 32] = total[0];
  }
  __syncthreads();
  // across warps
  if (thread_x == 0) {
    total[0] = 0.0f;
    #pragma unroll
    for (int w = 0; w < 8; ++w) {
      total[0] += partial[w];
    }
    S[block_x] = total[0];
  }
}
