// Templates that are refused: broken ones, constructs that are not known, and those that would take too long.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "halftone/text/chat_template.h"

namespace halftone {
namespace {

const std::vector<ChatMessage> kHello = {{"user", "Hello"}};

struct RefusedTemplate {
  std::string text;
  std::vector<std::string> words;  ///< of the message
};

void expect_refused(ErrorCode code, const std::vector<RefusedTemplate>& templates) {
  for (const RefusedTemplate& each : templates) {
    const std::string message =
        message_of(code, [&] { ChatTemplate::parse(each.text, "t.jinja").render(kHello); });
    EXPECT_TRUE(message.starts_with("t.jinja: ")) << message;
    for (const std::string& word : each.words)
      EXPECT_NE(message.find(word), std::string::npos) << each.text.substr(0, 200) << "\n" << message;
  }
}

std::string times(int count, const std::string& text) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(ChatTemplate, RefusesBrokenTemplates) {
  expect_refused(ErrorCode::kCorruptFile,
                 {
                     {"a\n{{", {"line 2", "no end", "}}"}},
                     {"{% if true %}", {"line 1", "there is no {% endif %}"}},
                     {"\n{% for m in messages %}\n", {"line 2", "there is no {% endfor %}"}},
                     {"{% macro f() %}", {"there is no {% endmacro %}"}},
                     {"{% set x %}abc", {"there is no {% endset %}"}},
                     {"{% generation %}", {"there is no {% endgeneration %}"}},
                     {"{% endif %}", {"{% endif %} ends nothing"}},
                     {"{% if 1 %}{% endfor %}", {"{% endfor %} ends nothing"}},
                     {"{% else %}", {"{% else %} ends nothing"}},
                     {"{% if 1 %}{% else %}{% elif 2 %}{% endif %}", {"{% elif %} ends nothing"}},
                     {"{# comment", {"a comment has no end"}},
                     {"{% raw %} {{", {"{% raw %} has no end"}},
                     {"{{ 'abc }}", {"a text has no end"}},
                     {"{{ \"\\x4\" }}", {"hexadecimal"}},
                     {"{{ '\\ud800' }}", {"no character"}},
                     {"{{ }}", {"an expression was expected, not the end of the tag"}},
                     {"{{ a b }}", {"\"}}\" was expected, not \"b\""}},
                     {"{{ (a }}", {"\"}\" stands where \")\" was expected"}},
                     {"{{ a) }}", {"\")\" closes nothing"}},
                     {"{{ [1, 2 }}", {"\"]\""}},
                     {"{{ {'a'} }}", {"\":\" was expected"}},
                     {"{{ a ? b }}", {"\"?\" is not expected"}},
                     {"{{ ä }}", {"\"ä\" is not expected"}},
                     {"{{ a. }}", {"a name was expected"}},
                     {"{{ a | }}", {"a name was expected"}},
                     {"{{ a is }}", {"a name was expected"}},
                     {"{{ 1 + }}", {"an expression was expected"}},
                     {"{{ f(a=1, 2) }}", {"without a name behind one with a name"}},
                     {"{{ x is defined is true }}", {}},
                     {"{{ 12abc }}", {"\"12a\" is no number"}},
                     {"{% %}", {"the name of a tag was expected"}},
                     {"{% 5 %}", {"the name of a tag was expected, not \"5\""}},
                     {"{% for %}{% endfor %}", {"a name was expected"}},
                     {"{% for m of messages %}{% endfor %}", {"\"in\" was expected, not \"of\""}},
                     {"{% for loop in messages %}{% endfor %}", {"\"loop\" cannot be assigned to"}},
                     {"{% set true = 1 %}", {"\"true\" cannot be assigned to"}},
                     {"{% set x = 1", {"no end"}},
                     {"{% break %}", {"{% break %} outside of a loop"}},
                     {"{% for m in messages %}{% macro f() %}{% continue %}{% endmacro %}{% endfor %}",
                      {"{% continue %} outside of a loop"}},
                     {"{% macro f(a=1, b) %}{% endmacro %}", {"without a default"}},
                     {"{% macro f(a %}{% endmacro %}", {}},
                     {"\xff", {"no UTF-8"}},
                 });
}

TEST(ChatTemplate, RefusesWhatItDoesNotKnowByName) {
  expect_refused(ErrorCode::kUnsupported,
                 {
                     {"\n\n{% include 'x' %}", {"line 3", "the tag {% include %} is not supported"}},
                     {"{% import 'x' as y %}", {"the tag {% import %}"}},
                     {"{% block a %}{% endblock %}", {"the tag {% block %}"}},
                     {"{% call f() %}{% endcall %}", {"the tag {% call %}"}},
                     {"{% filter upper %}{% endfilter %}", {"the tag {% filter %}"}},
                     {"{% with a = 1 %}{% endwith %}", {"the tag {% with %}"}},
                     {"{% for a in b recursive %}{% endfor %}", {"recursive"}},
                     {"{% for a, (b, c) in d %}{% endfor %}", {"tuple of tuples"}},
                     {"a\n{{ 'x' | wordwrap }}", {"line 2", "the filter wordwrap is not supported"}},
                     {"{{ 'x' | tojson(cls=1) }}", {"the filter tojson with an argument cls"}},
                     {"{{ 'x' is escaped }}", {"the test escaped"}},
                     {"{{ 'x'.format(1) }}", {"the method format of a text"}},
                     {"{{ messages.append(1) }}", {"the method append of a list"}},
                     {"{{ messages[0].update({}) }}", {"the method update of a mapping"}},
                     {"{{ ''.__class__ }}", {"the attribute __class__"}},
                     {"{{ ''['__class__'] }}", {"the attribute __class__"}},
                     {"{{ '%s' % 1 }}", {"the operator % of a text"}},
                     {"{{ f(*a) }}", {"the argument *"}},
                     {"{{ f(**a) }}", {"the argument **"}},
                     {"{{ messages[0, 1] }}", {"an index of several parts"}},
                     {"{{ 99999999999999999999 }}", {"the number 99999999999999999999"}},
                     {"{{ 9223372036854775807 + 1 }}", {"more than 64 bits"}},
                     {"{{ -9223372036854775807 * 2 }}", {"more than 64 bits"}},
                     {"{{ '\\N{DASH}' }}", {"the escape \\N"}},
                     {"{{ 'é' | upper }}", {"the upper case of U+00E9"}},
                     {"{{ ['…'] }}", {"the character U+2026"}},
                     {"{{ namespace }}", {"the text of a function"}},
                     {"{{ cycler('a') }}", {"the function cycler()"}},
                     {"{{ strftime_now('%E') }}", {"strftime_now() with %E"}},
                     {"{{ strftime_now('%1000d') }}", {"strftime_now() with %1"}},
                     {"{% for m in messages %}{{ loop.changed(m) }}{% endfor %}", {"loop.changed()"}},
                 });
}

TEST(ChatTemplate, RefusesWhatTheseMessagesDoNotAllow) {
  expect_refused(
      ErrorCode::kInvalidArgument,
      {
          {"a\n{{ raise_exception('Only system prompts!') }}",
           {"line 2", "refuses these messages: Only system prompts!"}},
          {"{{ nothing.x }}", {"nothing is undefined"}},
          {"{{ messages[0].name.x }}", {"name is undefined"}},
          {"{{ nothing() }}", {"nothing is undefined"}},
          {"{{ nothing + 'a' }}", {"nothing is undefined"}},
          {"{{ messages() }}", {"a list cannot be called"}},
          {"{{ 'a' + 1 }}", {"a text + an integer is not defined"}},
          {"{{ 'a' < 1 }}", {"have no order"}},
          {"{{ 1 in 'a' }}", {"an integer cannot be in a text"}},
          {"{{ 1 / 0 }}", {"division by zero"}},
          {"{{ 1 // 0 }}", {"division by zero"}},
          {"{{ 'abc'[::0] }}", {"the step of a slice is 0"}},
          {"{{ 'abc'['a':] }}", {"the bound of a slice is a text"}},
          {"{{ none[1:] }}", {"None has no slices"}},
          {"{% for x in 5 %}{% endfor %}", {"an integer cannot be iterated over"}},
          {"{% for a, b in [1] %}{% endfor %}", {"an integer cannot be iterated over"}},
          {"{% for a, b in ['abc'] %}{% endfor %}", {"3 values cannot be assigned to 2 names"}},
          {"{% set x = 1 %}{% set x.y = 2 %}", {"only namespaces"}},
          {"{{ 'a'.split('') }}", {"the separator of split is empty"}},
          {"{{ 'a'.startswith(1) }}", {"is an integer, not a text"}},
          {"{{ 'a'.strip(1, 2) }}", {"takes 1 arguments, not 2"}},
          {"{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", {"the macro f takes 1 arguments, not 2"}},
          {"{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", {"the macro f has no parameter b"}},
          {"{{ nothing | tojson }}", {"nothing is undefined"}},
          {"{{ range(1000000) }}", {"range() of 1000000 numbers"}},
          {"{{ range(1, 2, 0) }}", {"the step of range() is 0"}},
      });
}

TEST(ChatTemplate, BoundsWhatATemplateMayTake) {
  const std::string loops = times(6, "{% for a in range(100000) %}") + times(6, "{% endfor %}");
  const std::string doubling =
      "{% set ns = namespace(x='abcdefgh') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor "
      "%}";
  const std::string nested =
      "{% set ns = namespace(x=[]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
  const std::string chain =
      "{% set ns = namespace(x=[]) %}{% for i in range(20000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  expect_refused(
      ErrorCode::kCorruptFile,
      {
          {loops, {"line 1", "more than 3000000 steps"}},
          {doubling, {"more than 134217728 bytes of memory"}},
          {"{% set x = 'abcdefgh' * 1000000000 %}", {"bytes of memory"}},
          {"{% set x = 'ab' * 9223372036854775807 %}", {}},
          {"{% set x = 'a' * 1000000 %}{% for i in range(100) %}{{ x }}{% endfor %}",
           {"more than 33554432 bytes of text"}},
          {nested + "{{ ns.x }}", {"steps"}},
          {nested + "{{ ns.x == [[[]]] }}{{ ns.x | tojson }}", {"steps"}},
          {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", {"calls itself or nests deeper than 400"}},
          {"{{ " + times(1000, "(") + "1" + times(1000, ")") + " }}", {"nested deeper than 150"}},
          {"{{ " + times(1000, "[") + "1" + times(1000, "]") + " }}", {"nested deeper than 150"}},
          {"{{ " + times(1000, "not ") + "1 }}", {"nested deeper than 150"}},
          {"{{ " + times(1000, "-") + "1 }}", {"nested deeper than 150"}},
          {"{{ 1" + times(1000, " + 1") + " }}", {"nested deeper than 150"}},
          {"{{ a" + times(1000, ".a") + " }}", {"nested deeper than 150"}},
          {"{{ a" + times(1000, " | trim") + " }}", {"nested deeper than 150"}},
          {"{{ 1" + times(1000, " if 1 else 1") + " }}", {"nested deeper than 150"}},
          {times(1000, "{% if 1 %}") + times(1000, "{% endif %}"), {"nested deeper than 150"}},
          {times(400 << 10, "aa"), {"819200 bytes; a template may have 524288"}},
      });
  // Values within values without end are no trouble until something goes through them.
  EXPECT_EQ(ChatTemplate::parse(chain).render(kHello), "");
  expect_error(ErrorCode::kUnsupported, {"such depth"},
               [&] { ChatTemplate::parse(chain + "{{ ns.x }}").render(kHello); });
  expect_error(ErrorCode::kUnsupported, {"such depth"},
               [&] { ChatTemplate::parse(chain + "{{ ns.x | tojson }}").render(kHello); });
  expect_error(ErrorCode::kUnsupported, {"such depth"}, [&] {
    ChatTemplate::parse(chain + "{% set y = ns.x %}" + chain + "{{ ns.x == y }}").render(kHello);
  });
  const std::string circle =
      "{% set ns = namespace() %}{% set ns.x = [ns] %}{% macro f() %}{{ f }}{% endmacro %}{% set ns.f = f %}";
  EXPECT_EQ(ChatTemplate::parse(circle).render(kHello), "");
}

TEST(ChatTemplate, ChecksVariables) {
  const auto render = [](const std::string& name, const std::string& json) {
    return ChatTemplate::parse("{{ x }}").render(kHello, {.variables = {{name, json}}});
  };
  EXPECT_EQ(render("x", "[1, 2.5, \"a\", null, true, {\"b\": -3}]"), "[1, 2.5, 'a', None, True, {'b': -3}]");
  expect_error(ErrorCode::kCorruptFile, {"the variable x"}, [&] { render("x", "abc"); });
  expect_error(ErrorCode::kCorruptFile, {"the variable x", "duplicate key"},
               [&] { render("x", R"({"a": 1, "a": 2})"); });
  expect_error(ErrorCode::kCorruptFile, {"nested deeper"},
               [&] { render("x", times(100, "[") + times(100, "]")); });
  expect_error(ErrorCode::kUnsupported, {"64 bits"}, [&] { render("x", "18446744073709551615"); });
}

}  // namespace
}  // namespace halftone
