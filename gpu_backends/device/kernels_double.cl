// Those that need double precision, which some devices have not: an image of their own.
#include "gpu_backends/device/reductions_double.h"
