// Has the links of a target's tests go over a provider of libfabric's.
#include "tests/client/direct/linked_rank.h"

namespace ferry::client {
namespace {

[[maybe_unused]] const char* const chosen = [] {
  direct_library = "client/direct/libferry_direct_ofi.so";
  return link_provider = FERRY_TEST_PROVIDER;
}();

}  // namespace
}  // namespace ferry::client
