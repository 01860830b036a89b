package main

import (
	"context"
	"log"
	"time"

	"github.com/segmentio/kafka-go"
)

func segmentioProduce(bootstrap, topic string, count int) {
	writer := &kafka.Writer{
		Addr:         kafka.TCP(bootstrap),
		Topic:        topic,
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: 10 * time.Millisecond,
		Transport:    segmentioTransport(),
	}
	messages := make([]kafka.Message, count)
	for number := range messages {
		messages[number].Value = value(number)
	}
	must(writer.WriteMessages(context.Background(), messages...))
	must(writer.Close())
}

func segmentioConsume(bootstrap, topic, group string) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:           []string{bootstrap},
		GroupID:           group,
		Topic:             topic,
		SessionTimeout:    session,
		HeartbeatInterval: heartbeat,
		RebalanceTimeout:  session,
		JoinGroupBackoff:  heartbeat,
		StartOffset:       kafka.FirstOffset,
		MaxWait:           100 * time.Millisecond,
		Dialer:            segmentioDialer(),
	})
	for {
		message, err := reader.FetchMessage(context.Background())
		if err != nil {
			log.Println("again:", err)
			time.Sleep(heartbeat)
			continue
		}
		read(int32(message.Partition), message.Offset)
		if err := reader.CommitMessages(context.Background(), message); err != nil {
			log.Println("not committed:", err)
		}
	}
}
