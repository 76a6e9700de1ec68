#include "tests/vendor_memory/vendor.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ferry::vendor_memory {

void Require(bool ok, const char* what) {
  if (!ok) {
    std::fprintf(stderr, "%s: %s failed\n", VendorName(), what);
    std::exit(3);
  }
}

const Kind* FindKind(const char* name) {
  for (const Kind& kind : Kinds()) {
    if (std::strcmp(kind.name, name) == 0) {
      return &kind;
    }
  }
  return nullptr;
}

}  // namespace ferry::vendor_memory
