#include "client/core/control_library.h"

#include <dlfcn.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <climits>
#include <future>

#include "client/core/daemon_socket.h"
#include "client/core/library_paths.h"
#include "common/hex_text.h"

namespace ferry::client {
namespace {

constexpr char kFileName[] = "libferry_control.so";
// A NIC pins some 10 GB/s; one that is much slower than this limit is broken.
constexpr uint64_t kPinnedBytesPerMs = 128 << 10;

StatusOr<const ferry_control_api*> Load() {
  std::string tried;
  for (const std::string& path : LibraryPaths(kFileName, "control")) {
    void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);  // most of gRPC is never called
    if (library == nullptr) {
      tried += std::string("\n  ") + dlerror();
      continue;
    }
    auto entry =
        reinterpret_cast<ferry_control_entry_function>(dlsym(library, FERRY_CONTROL_ENTRY_NAME));
    const ferry_control_api* api = entry == nullptr ? nullptr : entry();
    if (api == nullptr || api->version != FERRY_CONTROL_API_VERSION) {
      return Status(ErrorCode::kVersionMismatch,
                    path + " has control API version " +
                        std::to_string(api == nullptr ? 0 : api->version) + ", libferry needs " +
                        std::to_string(FERRY_CONTROL_API_VERSION));
    }
    return api;
  }
  return Status(ErrorCode::kNotFound, std::string("cannot open ") + kFileName +
                                          ", which belongs beside libferry; tried:" + tried);
}

// Room for the sentence that a failing call leaves.
class ErrorText {
 public:
  ferry_control_text text() { return {buffer_.data(), buffer_.size()}; }
  Status status(int code) const {
    return code == 0 ? Status() : Status(static_cast<ErrorCode>(code), buffer_.data());
  }

 private:
  std::array<char, 1024> buffer_{};
};

}  // namespace

void ControlLibrary::LoadAhead() { loading_ = std::async(std::launch::async, Load); }

ControlLibrary::~ControlLibrary() {
  if (control_ != nullptr) {
    api_->close(control_);
  }
}

Status ControlLibrary::Connect(const std::string& run_directory, const uint8_t* token,
                               size_t token_bytes, uint32_t timeout_ms,
                               const std::string& daemon_user) {
  StatusOr<const ferry_control_api*> api = loading_.valid() ? loading_.get() : Load();
  FERRY_RETURN_IF_ERROR(api.status());
  api_ = *api;
  timeout_ms_ = timeout_ms;
  ErrorText error;
  const DaemonSocket wanted{run_directory, "control.sock", SOCK_STREAM, timeout_ms, daemon_user};
  int connect_error = 0;
  StatusOr<UniqueFd> socket = ConnectToDaemon(wanted, &connect_error);
  FERRY_RETURN_IF_ERROR(socket.status());
  if (connect_error != 0) {
    return {ErrorCode::kNoDaemon,
            StatusFromErrno(connect_error, "no ferryd answers at " + wanted.Path()).message()};
  }
  return error.status(api_->connect(socket->Release(), wanted.Path().c_str(),
                                    HexText({token, token_bytes}).c_str(), &control_,
                                    error.text()));
}

StatusOr<ControlLibrary::Membership> ControlLibrary::Join(uint32_t size, uint64_t first_ms,
                                                          const Waits& waits) {
  Membership membership;
  membership.peers.resize(size);
  ErrorText error;
  const auto call = [](void* argument, const char* missing) {
    (*static_cast<const Waits*>(argument))(missing);
  };
  FERRY_RETURN_IF_ERROR(error.status(api_->join(
      control_, timeout_ms_, static_cast<uint32_t>(std::min<uint64_t>(first_ms, INT_MAX)), size,
      membership.peers.data(), &membership.node, &membership.node_count, call,
      const_cast<Waits*>(&waits), error.text())));
  return membership;
}

StatusOr<std::string> ControlLibrary::Why() {
  FERRY_RETURN_IF_ERROR(CheckAnswers());
  ErrorText error;
  std::array<char, 1024> verdict{};
  FERRY_RETURN_IF_ERROR(error.status(
      api_->why(control_, timeout_ms_, {verdict.data(), verdict.size()}, error.text())));
  return std::string(verdict.data());
}

// The timeout for pinning or unpinning so much memory; other ranks' memory may come first.
uint32_t ControlLibrary::PinningMs(uint64_t size_bytes) const {
  return static_cast<uint32_t>(
      std::min<uint64_t>(timeout_ms_ + size_bytes / kPinnedBytesPerMs, INT_MAX));
}

Status ControlLibrary::CheckAnswers() const {
  return is_given_up_.load(std::memory_order_relaxed)
             ? Status(ErrorCode::kDaemonDied, "ferryd hangs: it is asked nothing any more")
             : Status();
}

Status ControlLibrary::RegisterRegion(const ferry_control_region& region) {
  FERRY_RETURN_IF_ERROR(CheckAnswers());
  ErrorText error;
  return error.status(
      api_->register_region(control_, PinningMs(region.size_bytes), &region, error.text()));
}

Status ControlLibrary::DeregisterRegion(uint32_t region, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(CheckAnswers());
  ErrorText error;
  return error.status(
      api_->deregister_region(control_, PinningMs(size_bytes), region, error.text()));
}

Status ControlLibrary::OfferMatches(bool sends, std::span<const ferry_control_offer> offers) {
  FERRY_RETURN_IF_ERROR(CheckAnswers());
  ErrorText error;
  return error.status(api_->offer_matches(control_, timeout_ms_, sends ? 1 : 0, offers.data(),
                                          offers.size(), error.text()));
}

Status ControlLibrary::WithdrawMatch(bool send, const ferry_control_match_key& key,
                                     uint64_t rounds) {
  FERRY_RETURN_IF_ERROR(CheckAnswers());
  ErrorText error;
  return error.status(
      api_->withdraw_match(control_, timeout_ms_, send ? 1 : 0, &key, rounds, error.text()));
}

Status ControlLibrary::Detach() {
  FERRY_RETURN_IF_ERROR(CheckAnswers());
  ErrorText error;
  return error.status(api_->detach(control_, timeout_ms_, error.text()));
}

Status ControlLibrary::Abort(int exit_code, const char* reason) {
  FERRY_RETURN_IF_ERROR(CheckAnswers());
  ErrorText error;
  return error.status(api_->abort(control_, timeout_ms_, exit_code, reason, error.text()));
}

StatusOr<std::string> ControlLibrary::ControlAddress() {
  ErrorText error;
  std::array<char, 512> address{};
  FERRY_RETURN_IF_ERROR(error.status(api_->control_address(
      control_, timeout_ms_, {address.data(), address.size()}, error.text())));
  return std::string(address.data());
}

Status ControlLibrary::CreateJob(const ferry_control_job& job) {
  ErrorText error;
  return error.status(api_->create_job(control_, timeout_ms_, &job, error.text()));
}

}  // namespace ferry::client
