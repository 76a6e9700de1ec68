#include "daemon/grpc/unread_answers.h"

#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::daemon {

using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerInterceptorFactoryInterface;
using grpc::experimental::ServerRpcInfo;

// gRPC keeps it for as long as the call.
class UnreadAnswers::Watcher final : public Interceptor {
 public:
  Watcher(UnreadAnswers& answers, const grpc::ServerContextBase* call)
      : answers_(answers), call_(call) {}
  ~Watcher() override { answers_.End(call_); }
  void Intercept(InterceptorBatchMethods* methods) override { methods->Proceed(); }

 private:
  UnreadAnswers& answers_;
  const grpc::ServerContextBase* const call_;
};

class UnreadAnswers::WatcherMaker final : public ServerInterceptorFactoryInterface {
 public:
  explicit WatcherMaker(UnreadAnswers& answers) : answers_(answers) {}
  Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    return new Watcher(answers_, call->server_context());
  }

 private:
  UnreadAnswers& answers_;
};

void UnreadAnswers::Watch(grpc::ServerBuilder& builder) {
  std::vector<std::unique_ptr<ServerInterceptorFactoryInterface>> makers;
  makers.push_back(std::make_unique<WatcherMaker>(*this));
  builder.experimental().SetInterceptorCreators(std::move(makers));
}

Status UnreadAnswers::Keep(const grpc::ServerContextBase& call, uid_t uid, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  uint64_t& unread = bytes_[uid];
  if (unread != 0 && unread + bytes > kMostBytes) {
    return {ErrorCode::kLimitExceeded, "uid " + std::to_string(uid) + " has answers of " +
                                           std::to_string(unread) +
                                           " bytes that nobody has read: read them, or end the "
                                           "calls, and ask again"};
  }
  unread += bytes;
  answers_[&call] = {uid, bytes};
  return {};
}

void UnreadAnswers::End(const grpc::ServerContextBase* call) {
  const std::lock_guard lock(mutex_);
  const auto answer = answers_.find(call);
  if (answer == answers_.end()) {
    return;
  }
  const auto user = bytes_.find(answer->second.uid);
  if ((user->second -= answer->second.bytes) == 0) {
    bytes_.erase(user);
  }
  answers_.erase(answer);
}

}  // namespace ferry::daemon
