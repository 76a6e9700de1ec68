#include "tools/admin/observer.h"

namespace ferry::tools {

StatusOr<Observer> Observer::Connect(const std::string& run_directory, uint64_t timeout_ms) {
  StatusOr<AdminClient> admin = AdminClient::Connect(run_directory, timeout_ms);
  if (admin.ok()) {
    return Observer(run_directory, std::move(*admin));
  }
  if (admin.status().code() != ErrorCode::kPermissionDenied) {
    return admin.status();
  }
  StatusOr<LauncherClient> user = LauncherClient::Connect(run_directory, timeout_ms);
  FERRY_RETURN_IF_ERROR(user.status());
  return Observer(run_directory, std::move(*user));
}

const control::StatusReply& Observer::daemon() const {
  if (const auto* client = std::get_if<AdminClient>(&client_)) {
    return client->daemon();
  }
  return std::get<LauncherClient>(client_).daemon();
}

}  // namespace ferry::tools
