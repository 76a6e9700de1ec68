// The last step of calls of both interfaces, MPI's and that of tools, once their arguments have
// been checked.
//
// Calling thread: any.
#pragma once

#include <type_traits>

namespace ferry::mpi {

// A base of `Call`, which has ok(), result() and Refuse(Failure).
template <typename Call>
class HasThen {
 public:
  // Calls `use` unless the call has failed, refuses the failure that `use` may return, and returns
  // the value that the call is to return.
  template <typename Use>
  int Then(Use&& use) {
    auto& call = static_cast<Call&>(*this);
    if (call.ok()) {
      if constexpr (std::is_void_v<std::invoke_result_t<Use>>) {
        use();
      } else {
        call.Refuse(use());
      }
    }
    return call.result();
  }
};

}  // namespace ferry::mpi
