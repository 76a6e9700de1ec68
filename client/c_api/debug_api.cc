// Shows debuggers where the rank's session is (shm/debug_session.h).
#include "client/c_api/running.h"
#include "common/version.h"

extern "C" {

FERRY_API constinit ferry::shm::DebugSession ferry_debug_session = {};

}  // extern "C"

namespace ferry::client {

void ShowSession(const Client* client) {
  if (client == nullptr) {
    ferry_debug_session.address = 0;
    return;
  }
  const engine::SessionView& view = client->view();
  ferry_debug_session = {reinterpret_cast<uint64_t>(view.layout), kLayoutVersion, view.rank,
                         view.job_size, view.request_limit};
}

}  // namespace ferry::client
