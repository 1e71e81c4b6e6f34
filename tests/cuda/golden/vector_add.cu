// def vector_add(float(N) A, float(N) B) -> (C) {
//   C(i) = A(i) + B(i)
// }
// N = 4096

typedef signed char int8;
typedef short int16;
typedef long long int64;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;

// grid (4, 1, 1), block (256, 1, 1), 0 bytes of shared memory
extern "C" __global__ void __launch_bounds__(256) vector_add(
    const float* __restrict__ A,
    const float* __restrict__ B,
    float* __restrict__ C
) {
  const int block_x = int(blockIdx.x);
  const int thread_x = int(threadIdx.x);
  const int first = block_x * 1024 + thread_x * 4;
  __align__(16) float A_r[4];
  __align__(16) float B_r[4];
  __align__(16) float C_r[4];
  *(float4*)&A_r[0] = __ldg((const float4*)&A[first]);
  *(float4*)&B_r[0] = __ldg((const float4*)&B[first]);
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    C_r[i] = A_r[i] + B_r[i];
  }
  *(float4*)&C[first] = *(const float4*)&C_r[0];
}
