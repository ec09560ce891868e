// Compiled only into builds without CUDA kernels. Their programs have no device, so nobody calls
// these functions. Only kernels that train/ calls need one here: the program does not link
// models/device, which calls the others. The target every_object finds a missing function.
#include "core/error.hpp"
#include "models/kernels/flat_launches.hpp"

namespace tpudist {
namespace {

[[noreturn]] void no_kernels() {
  throw Error(ErrorKind::failed, "this program was built without kernels for GPUs");
}

}  // namespace

void launch_leaf_sums(int, std::int64_t, const std::int32_t*, float*, float*, CUstream_st*) {
  no_kernels();
}
void launch_rows_to_slices(std::int64_t, std::int64_t, int, std::int64_t, const std::int32_t*,
                           const float*, float*, CUstream_st*) {
  no_kernels();
}
void launch_slices_to_rows(std::int64_t, std::int64_t, std::int64_t, const float*, float*,
                           CUstream_st*) {
  no_kernels();
}
void launch_put_values(std::int64_t, const std::int32_t*, const float*, std::int64_t, std::int64_t,
                       float*, CUstream_st*) {
  no_kernels();
}
void launch_losses_and_norms(int, std::int64_t, const NormPart*, std::int64_t, const float*,
                             std::int64_t, const float*, LaneSums*, MemberTotals*, CUstream_st*) {
  no_kernels();
}
void launch_optimizer_step(int, const SteppedBuffers&, const float*, std::int64_t,
                           const StepCoefficients*, int, const TensorClip&, CUstream_st*) {
  no_kernels();
}
void launch_average_point(int, std::int64_t, const float*, const float*, float*, CUstream_st*) {
  no_kernels();
}

}  // namespace tpudist
