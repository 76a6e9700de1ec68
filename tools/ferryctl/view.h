// What a daemon answered, as JSON and as text for people. Pure functions; any thread.
//
// JSON has the names of proto/control.proto and plain numbers; text has tables, with units.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "proto/control.pb.h"

namespace ferry::tools {

struct View {
  nlohmann::ordered_json json;
  std::string text;
};

View MakeView(const control::StatusReply& reply);
View MakeView(const control::SessionsReply& reply);
View MakeView(const control::CountersReply& reply);
View MakeView(const control::NicsReply& reply);
View MakeView(const control::GpusReply& reply);
View MakeView(const control::FaultsReply& reply);

}  // namespace ferry::tools
