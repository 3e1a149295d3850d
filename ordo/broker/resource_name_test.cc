#include "ordo/broker/resource_name.h"

#include <string>

#include <gtest/gtest.h>

namespace ordo::broker {
namespace {

bool is_topic(const std::string& text) {
  return ResourceName::parse(text, Collection::topics).has_value();
}

TEST(ResourceNameTest, ANameHasAProjectAndAnId) {
  const std::string text = "projects/my-project/topics/orders";
  const Result<ResourceName> name = ResourceName::parse(text, Collection::topics);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->project, "my-project");
  EXPECT_EQ(name->id, "orders");
  EXPECT_EQ(resource_name(name->project, Collection::topics, name->id), text);
  EXPECT_EQ(id_of(text), "orders");
}

TEST(ResourceNameTest, AnIdHas3To255CharactersOfTheAllowedOnes) {
  EXPECT_TRUE(is_topic("projects/p/topics/abc"));
  EXPECT_FALSE(is_topic("projects/p/topics/ab"));
  EXPECT_TRUE(is_topic("projects/p/topics/" + std::string(255, 'a')));
  EXPECT_FALSE(is_topic("projects/p/topics/" + std::string(256, 'a')));
  EXPECT_TRUE(is_topic("projects/p/topics/aZ0-_.~+%"));
  for (const char* bad : {"a b", "a/b", "ab\xc3\xa9", "a$bc", "ab\n", ""}) {
    EXPECT_FALSE(is_topic(std::string("projects/p/topics/") + bad)) << bad;
  }
}

TEST(ResourceNameTest, AnIdBeginsWithALetterAndNotWithGoog) {
  EXPECT_FALSE(is_topic("projects/p/topics/1abc"));
  EXPECT_FALSE(is_topic("projects/p/topics/-abc"));
  EXPECT_FALSE(is_topic("projects/p/topics/google"));
  EXPECT_TRUE(is_topic("projects/p/topics/Google"));
  EXPECT_FALSE(is_topic(std::string(kDeletedTopic)));
}

TEST(ResourceNameTest, AProjectIsAnythingWithoutASlashButNotEmpty) {
  EXPECT_TRUE(is_topic("projects/ex.com:p/topics/abc"));
  EXPECT_FALSE(is_topic("projects//topics/abc"));
  EXPECT_FALSE(is_topic("projects/topics/abc"));
  EXPECT_TRUE(parse_project_name("projects/p"));
  EXPECT_EQ(*parse_project_name("projects/ex.com:p"), "ex.com:p");
  for (const char* bad : {"", "projects", "projects/", "projects/p/", "p"}) {
    EXPECT_FALSE(parse_project_name(bad)) << bad;
  }
}

TEST(ResourceNameTest, ANameOfAnotherCollectionIsRefusedInTheServicesWords) {
  const Result<ResourceName> name =
      ResourceName::parse("projects/p/topics/abc", Collection::subscriptions);
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(name.error().message,
            "Invalid resource name given (name=projects/p/topics/abc). Refer to "
            "https://cloud.google.com/pubsub/docs/admin#resource_names for more information.");
  EXPECT_FALSE(is_topic("projects/p/topicsabc"));
  EXPECT_FALSE(is_topic("projects/p/topics"));
  EXPECT_FALSE(is_topic("/projects/p/topics/abc"));
}

TEST(ResourceNameTest, AVeryLongNameIsNotRepeatedInFull) {
  const Result<ResourceName> name =
      ResourceName::parse("projects/p/topics/" + std::string(1'000'000, 'a'), Collection::topics);
  ASSERT_FALSE(name);
  EXPECT_LT(name.error().message.size(), 1'000u);
}

}  // namespace
}  // namespace ordo::broker
