/* The kernels of the examples of partitioned communication, but for partitioned_bce's, which needs a
 * device's mathematics: device_code_test.sh compiles them to code for every kind of device. */
#include "examples/partitioned_jacobi/kernel.h"
#include "examples/partitioned_vector_add/kernel.h"

FERRY_DEVICE_KERNEL test_vector_add(const FERRY_DEVICE_GLOBAL double* x,
                                    FERRY_DEVICE_GLOBAL double* sum, ferry_device_u64 count,
                                    MPIX_Prequest send, FERRY_DEVICE_GLOBAL int* status) {
  *status = vector_add(x, x, sum, count, 16, send);
}

FERRY_DEVICE_KERNEL test_tiles(FERRY_DEVICE_GLOBAL double* cells,
                                const FERRY_DEVICE_GLOBAL heat_side* sides,
                                ferry_device_u64 step, FERRY_DEVICE_GLOBAL int* status) {
  heat_shape shape;
  shape.tiles_across = 4;
  shape.tiles_down = 2;
  shape.tile_width = 64;
  shape.tile_height = 32;
  *status = heat_step(shape, cells, step % 2, sides, sides + HEAT_SIDES);
}
