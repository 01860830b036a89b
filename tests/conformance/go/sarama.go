package main

import (
	"context"
	"log"
	"time"

	"github.com/IBM/sarama"
)

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.Group.Session.Timeout = session
	config.Consumer.Group.Heartbeat.Interval = heartbeat
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Producer.Return.Successes = true
	config.Net.MaxOpenRequests = 1
	saramaSecurity(config)
	return config
}

func saramaProduce(bootstrap, topic string, count int) {
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, saramaConfig())
	must(err)
	messages := make([]*sarama.ProducerMessage, count)
	for number := range messages {
		messages[number] = &sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(value(number))}
	}
	must(producer.SendMessages(messages))
	must(producer.Close())
}

type reader struct{}

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (reader) ConsumeClaim(group sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			read(message.Partition, message.Offset)
			group.MarkMessage(message, "")
			if len(claim.Messages()) == 0 {
				group.Commit()
			}
		case <-group.Context().Done():
			return nil
		}
	}
}

func saramaConsume(bootstrap, topic, group string) {
	consumer, err := sarama.NewConsumerGroup([]string{bootstrap}, group, saramaConfig())
	must(err)
	for {
		if err := consumer.Consume(context.Background(), []string{topic}, reader{}); err != nil {
			log.Println("again:", err)
			time.Sleep(heartbeat)
		}
	}
}

func saramaSurvey(bootstrap, topic, group string) map[string]any {
	client, err := sarama.NewClient([]string{bootstrap}, saramaConfig())
	must(err)
	admin, err := sarama.NewClusterAdminFromClient(client)
	must(err)
	defer admin.Close()
	groups, err := admin.ListConsumerGroups()
	must(err)
	committed, err := admin.ListConsumerGroupOffsets(group, nil)
	must(err)
	directories, err := admin.DescribeLogDirs([]int32{1})
	must(err)
	if code := directories[1][0].ErrorCode; code != sarama.ErrNoError {
		must(code)
	}
	settings, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
	must(err)
	quotas, err := admin.DescribeClientQuotas(nil, false)
	must(err)
	partitions, err := client.Partitions(topic)
	must(err)
	var records, behind int64
	for _, partition := range partitions {
		oldest, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
		must(err)
		newest, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
		must(err)
		records += newest - oldest
		behind += newest - committed.GetBlock(topic, partition).Offset
	}
	inSync, err := client.InSyncReplicas(topic, 0)
	must(err)
	return map[string]any{
		"records":  records,
		"lag":      behind,
		"kind":     groups[group],
		"settings": len(settings),
		"quotas":   len(quotas),
		"in_sync":  len(inSync),
	}
}
