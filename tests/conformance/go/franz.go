package main

import (
	"context"
	"log"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func franzProduce(bootstrap, topic string, count int) {
	client, err := kgo.NewClient(franzOptions(bootstrap, kgo.DefaultProduceTopic(topic))...)
	must(err)
	defer client.Close()
	for number := range count {
		client.Produce(context.Background(), &kgo.Record{Value: value(number)},
			func(_ *kgo.Record, err error) { must(err) })
	}
	must(client.Flush(context.Background()))
}

func franzConsume(bootstrap, topic, group string) {
	client, err := kgo.NewClient(franzOptions(
		bootstrap,
		kgo.ConsumeTopics(topic),
		kgo.ConsumerGroup(group),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(heartbeat),
		kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)...)
	must(err)
	for {
		fetches := client.PollFetches(context.Background())
		fetches.EachRecord(func(record *kgo.Record) { read(record.Partition, record.Offset) })
		if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
			log.Println("not committed:", err)
		}
	}
}

func franzSurvey(bootstrap, topic, group string) map[string]any {
	client, err := kgo.NewClient(franzOptions(bootstrap)...)
	must(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	must(err)
	served := kversion.FromApiVersionsResponse(versions)
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, topic)
	must(err)
	ends, err := admin.ListEndOffsets(ctx, topic)
	must(err)
	lags, err := admin.Lag(ctx, group)
	must(err)
	directories, err := admin.DescribeAllLogDirs(ctx, nil)
	must(err)
	bytes := int64(0)
	directories.Each(func(each kadm.DescribedLogDir) {
		must(each.Err)
		bytes += each.Size()
	})
	brokers, err := admin.DescribeBrokerConfigs(ctx, 1)
	must(err)
	moving, err := admin.ListPartitionReassignments(ctx, nil)
	must(err)
	topics, err := admin.ListTopicsWithInternal(ctx)
	must(err)
	return map[string]any{
		"guess":     served.VersionGuess(),
		"unlike":    unlike(served),
		"records":   sum(ends) - sum(starts),
		"lag":       lags[group].Lag.Total(),
		"bytes":     bytes,
		"settings":  len(brokers[0].Configs),
		"moving":    len(moving),
		"in_sync":   len(topics[topic].Partitions[0].ISR),
		"internals": topics["__consumer_offsets"].IsInternal,
	}
}

// unlike gives the keys that the broker serves up to another version than Kafka 4.3 does.
func unlike(served *kversion.Versions) []int16 {
	keys := []int16{}
	kafka := kversion.V4_3_0()
	served.EachMaxKeyVersion(func(key, highest int16) {
		if theirs, known := kafka.LookupMaxKeyVersion(key); !known || theirs != highest {
			keys = append(keys, key)
		}
	})
	return keys
}

func sum(offsets kadm.ListedOffsets) (total int64) {
	offsets.Each(func(each kadm.ListedOffset) {
		must(each.Err)
		total += each.Offset
	})
	return total
}
