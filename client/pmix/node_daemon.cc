#include "client/pmix/node_daemon.h"

#include <utility>

#include "config/environment.h"

namespace ferry::client {

Status NodeDaemon::Meet(const std::string& run_directory) {
  auto attach = std::make_unique<AttachConnection>();
  FERRY_RETURN_IF_ERROR(attach->Connect(run_directory, options_.attach_timeout_ms));
  const StatusOr<attach::UserReply> user = attach->IdentifyUser();
  FERRY_RETURN_IF_ERROR(user.status());
  auto control = std::make_unique<ControlLibrary>();
  FERRY_RETURN_IF_ERROR(control->Connect(run_directory, user->token, sizeof(user->token),
                                         static_cast<uint32_t>(options_.attach_timeout_ms)));
  attach_ = std::move(attach);
  control_ = std::move(control);
  return {};
}

StatusOr<DaemonPlace> NodeDaemon::Find(bool alone) {
  DaemonPlace place{.run_directory = options_.run_directory, .control_address = ""};
  Status met = Meet(place.run_directory);
  const bool usual =
      place.run_directory == config::DefaultRunDirectory(config::ProcessEnvironment());
  if (met.code() == ErrorCode::kNoDaemon && usual &&
      place.run_directory != config::kSystemRunDirectory) {
    place.run_directory = config::kSystemRunDirectory;
    met = Meet(place.run_directory);
  }
  const bool none =
      met.code() == ErrorCode::kNoDaemon || (met.code() == ErrorCode::kPermissionDenied && usual);
  if (none && alone) {
    StatusOr<std::unique_ptr<OwnDaemon>> own = OwnDaemon::Start();
    FERRY_RETURN_IF_ERROR(own.status());
    own_ = std::move(*own);
    place.run_directory = own_->run_directory();
    met = Meet(place.run_directory);
  } else if (none) {
    return Status(ErrorCode::kNoDaemon,
                  met.message() + " (a job of several nodes needs a ferryd on each)");
  }
  FERRY_RETURN_IF_ERROR(met);
  StatusOr<std::string> address = control_->ControlAddress();
  FERRY_RETURN_IF_ERROR(address.status());
  place.control_address = std::move(*address);
  return place;
}

}  // namespace ferry::client
