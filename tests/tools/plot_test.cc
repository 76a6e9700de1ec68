#include "tools/tune/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

Panel PanelOf(const PlotLine& line) {
  Panel panel;
  panel.title = "a < b";
  panel.y_label = "speed";
  panel.lines = {line};
  return panel;
}

TEST(PlotTest, SizesAndNumbersOnTheXAxis) {
  Panel panel = PanelOf({.name = "line", .color = "#123456", .points = {{1024, 1}, {4096, 2}}});
  EXPECT_THAT(Svg("t", "s", {panel}), HasSubstr(">4 KiB</text>"));
  EXPECT_THAT(Svg("t", "s", {panel}), HasSubstr(">size</text>"));
  panel.x_is_bytes = false;
  panel.x_label = "ranks";
  const std::string svg = Svg("t", "s", {panel});
  EXPECT_THAT(svg, HasSubstr(">4096</text>"));
  EXPECT_THAT(svg, HasSubstr(">ranks</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("KiB")));
}

TEST(PlotTest, BarePointsHaveNoLine) {
  PlotLine line{.name = "dots", .color = "#123456", .marks = true, .points = {{1, 1}, {2, 2}}};
  EXPECT_THAT(Svg("t", "s", {PanelOf(line)}), HasSubstr("<path class=\"l\""));
  line.is_bare = true;
  const std::string svg = Svg("t", "s", {PanelOf(line)});
  EXPECT_THAT(svg, Not(HasSubstr("<path class=\"l\"")));
  EXPECT_THAT(svg, HasSubstr("<circle"));
  EXPECT_THAT(svg, HasSubstr(">dots</text>"));
}

TEST(PlotTest, EscapesText) {
  EXPECT_THAT(Svg("t", "s", {PanelOf({.name = "x&y", .color = "#000", .points = {{1, 1}}})}),
              testing::AllOf(HasSubstr("a &lt; b"), HasSubstr("x&amp;y")));
}

}  // namespace
}  // namespace ferry::tools
