package main

import (
	"context"
	"fmt"
	"log"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	quiet     = 4 * time.Second
	step      = 30 * time.Millisecond
	renewable = 1200 * time.Millisecond // less than the two seconds of a lock
)

// Reads a queue in one of several ways, and says a line for each thing that happens.
func franzShare(bootstrap, topic, group, way string) {
	begin(bootstrap, group)
	switch way {
	case "explicit":
		explicit(member(bootstrap, topic, group))
	case "strict":
		explicit(member(bootstrap, topic, group, kgo.ShareMaxRecords(2), kgo.ShareMaxRecordsStrict()))
	case "renew":
		renew(member(bootstrap, topic, group))
	case "leave":
		leave(bootstrap, topic, group)
	case "work":
		work(bootstrap, topic, group)
	default:
		log.Fatalf("no such way: %s", way)
	}
	tellOffsets(bootstrap, topic, group)
}

func member(bootstrap, topic, group string, more ...kgo.Opt) *kgo.Client {
	options := []kgo.Opt{
		kgo.ConsumeTopics(topic),
		kgo.ShareGroup(group),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			if err := results.Error(); err != nil {
				fmt.Println("refused", err)
			}
		}),
	}
	client, err := kgo.NewClient(franzOptions(bootstrap, append(options, more...)...)...)
	must(err)
	return client
}

// The group reads from the first record on.
func begin(bootstrap, group string) {
	client, err := kgo.NewClient(franzOptions(bootstrap)...)
	must(err)
	defer client.Close()
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	setting := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	setting.Name, setting.Value = "share.auto.offset.reset", kmsg.StringPtr("earliest")
	resource.Configs = append(resource.Configs, setting)
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(context.Background(), client)
	must(err)
	if answer.Resources[0].ErrorCode != 0 {
		log.Fatal(*answer.Resources[0].ErrorMessage)
	}
}

// What comes next, in the order of offsets; nothing once it is quiet.
func next(client *kgo.Client, within time.Duration) []*kgo.Record {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	records := client.PollFetches(ctx).Records()
	sort.Slice(records, func(a, b int) bool { return records[a].Offset < records[b].Offset })
	said := []string{"got"}
	for _, each := range records {
		said = append(said, fmt.Sprintf("%dx%d", each.Offset, each.DeliveryCount()))
	}
	fmt.Println(strings.Join(said, " "))
	return records
}

func flush(client *kgo.Client) {
	must(client.FlushAcks(context.Background()))
}

// At first accepts what is even, rejects every fifth, releases the rest; then accepts all.
func explicit(client *kgo.Client) {
	for within := patience; ; within = quiet {
		records := next(client, within)
		if len(records) == 0 {
			break
		}
		for _, each := range records {
			each.Ack(judged(each))
		}
		flush(client)
	}
	client.Close()
}

func judged(record *kgo.Record) kgo.AckStatus {
	if record.DeliveryCount() > 1 || record.Offset%2 == 0 {
		return kgo.AckAccept
	}
	if record.Offset%5 == 0 {
		return kgo.AckReject
	}
	return kgo.AckRelease
}

// Renews three times, each before the lock ends, then accepts: nobody else gets them meanwhile.
func renew(client *kgo.Client) {
	records := next(client, patience)
	for range 3 {
		time.Sleep(renewable)
		client.MarkAcks(kgo.AckRenew, records...)
		flush(client)
	}
	time.Sleep(renewable)
	client.MarkAcks(kgo.AckAccept, records...)
	flush(client)
	next(client, quiet)
	client.Close()
}

// One that accepts the first record and goes leaves the others to the next one.
func leave(bootstrap, topic, group string) {
	client := member(bootstrap, topic, group)
	records := next(client, patience)
	records[0].Ack(kgo.AckAccept)
	client.Close()
	client = member(bootstrap, topic, group)
	client.MarkAcks(kgo.AckAccept, next(client, patience)...)
	flush(client)
	client.Close()
}

// One of several that work: says what it has accepted once that was answered, and not refused.
func work(bootstrap, topic, group string) {
	var refusals atomic.Int64
	client := member(bootstrap, topic, group, kgo.ShareMaxRecords(5), kgo.ShareMaxRecordsStrict(),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			if results.Error() != nil {
				refusals.Add(1)
			}
		}))
	for {
		records, before := client.PollFetches(context.Background()).Records(), refusals.Load()
		time.Sleep(step)
		client.MarkAcks(kgo.AckAccept, records...)
		flush(client)
		if refusals.Load() == before {
			for _, each := range records {
				read(each.Partition, each.Offset)
			}
		}
	}
}

func tellOffsets(bootstrap, topic, group string) {
	client, err := kgo.NewClient(franzOptions(bootstrap)...)
	must(err)
	defer client.Close()
	admin, ctx := kadm.NewClient(client), context.Background()
	groups, err := admin.DescribeShareGroups(ctx, group)
	must(err)
	described := groups[group]
	must(described.Err)
	offsets, err := admin.DescribeShareGroupOffsets(ctx, group)
	must(err)
	found := offsets[group]
	must(found.Err)
	for _, each := range found.Offsets.Sorted() {
		must(each.Err)
		fmt.Println(described.GroupState, len(described.Members), each.Topic, each.Partition, each.Lag)
	}
}
