// Refuses gRPC clients in words: answers each call that a connection makes with one status, as a
// gRPC server would, without being one. It takes a few bytes and one descriptor, so that it works
// where there is nothing left to serve with. A few connections are kept for a moment, until their
// first call has come and was answered; more than that, and the oldest is closed.
//
// Thread: the control thread; nothing blocks. Insecure connections only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <list>
#include <memory>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::daemon {

class GrpcRefusals {
 public:
  explicit GrpcRefusals(boost::asio::io_context& context);
  ~GrpcRefusals();

  // `socket` is nonblocking.
  void Refuse(UniqueFd socket, const Status& why);
  // Closes the oldest one, if there is one.
  void DropOldest();
  void DropAll();

 private:
  class Connection;

  boost::asio::io_context& context_;
  std::list<std::shared_ptr<Connection>> connections_;
};

}  // namespace ferry::daemon
