// The objects of which predefined handles are the addresses.
//
// The loader copies them into programs that name them, before any code runs, and both then use that
// copy: they have their values from the start, and the sizes that they have in Open MPI.
#include "mpi/foreign/convert.h"

namespace ferry::foreign {
namespace {

template <size_t kBytes>
struct alignas(32) Object : TheirObject {
  char rest[kBytes - sizeof(TheirObject)];
};

}  // namespace
}  // namespace ferry::foreign

#define FERRY_OBJECT(name, handle, bytes)                      \
  extern "C" FERRY_SHOWN ferry::foreign::Object<(bytes)> name; \
  ferry::foreign::Object<(bytes)> name = {{(handle)}, {}};
#include "mpi/foreign/openmpi/objects.inc"
#undef FERRY_OBJECT

namespace ferry::foreign {

constinit const std::array<TheirHandle, kPredefined> objects = [] {
  std::array<TheirHandle, kPredefined> table{};
#define FERRY_OBJECT(name, handle, bytes) table[(handle)] = &(name);
#include "mpi/foreign/openmpi/objects.inc"
#undef FERRY_OBJECT
  return table;
}();

}  // namespace ferry::foreign
