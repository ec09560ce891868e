#include "models/operators/product_loops.hpp"

#include "models/kernels/vectorised.hpp"

namespace tpudist {

#define TPUDIST_PRODUCT_LOOPS(T, MARK)                                                   \
  template <>                                                                            \
  MARK void ProductLoops<T>::add(const T* x, const T* y, T weight, std::int64_t heads,   \
                                 std::int64_t a, std::int64_t b, T* s) {                 \
    for (std::int64_t h = 0; h < heads; ++h, x += a, y += b) {                           \
      for (std::int64_t i = 0; i < a; ++i, s += b) {                                     \
        const T factor = weight * x[i];                                                  \
        for (std::int64_t j = 0; j < b; ++j) s[j] += factor * y[j];                      \
      }                                                                                  \
    }                                                                                    \
  }                                                                                      \
  template <>                                                                            \
  MARK void ProductLoops<T>::apply(const T* x, const T* s, T weight, std::int64_t heads, \
                                   std::int64_t a, std::int64_t b, T* y) {               \
    for (std::int64_t h = 0; h < heads; ++h, x += a, y += b) {                           \
      for (std::int64_t i = 0; i < a; ++i, s += b) {                                     \
        const T factor = weight * x[i];                                                  \
        for (std::int64_t j = 0; j < b; ++j) y[j] += factor * s[j];                      \
      }                                                                                  \
    }                                                                                    \
  }

TPUDIST_PRODUCT_LOOPS(float, TPUDIST_VECTORISED)
TPUDIST_PRODUCT_LOOPS(double, )
#undef TPUDIST_PRODUCT_LOOPS

}  // namespace tpudist
